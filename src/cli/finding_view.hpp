#pragma once
/// \file
/// Findings as people and scripts see them.

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <postrider/diagnosis.hpp>

#include "cli/console.hpp"

namespace postrider::cli {

/// Errors first, then warnings, then notes; a paragraph each.
[[nodiscard]] std::string findings_text(const std::vector<Finding>& findings,
                                        const Console& console);
/// {"errors": 1, "warnings": 0, "notes": 0, "findings": […]}
[[nodiscard]] nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);

/// Nothing when there is no finding.
[[nodiscard]] std::optional<FindingSeverity> worst(const std::vector<Finding>& findings);

}  // namespace postrider::cli
