#pragma once
/// \file
/// What can be wrong with a configuration that can be read: told without asking a database or a
/// destination.

#include <string>
#include <vector>

#include <postrider/diagnosis.hpp>

#include "config/load.hpp"
#include "config/settings.hpp"

namespace postrider::cli {

/// Missing routes, destinations that cannot be, patterns that say the same twice, queues that only
/// routes or only workers know, and files with secrets that others may read.
[[nodiscard]] std::vector<Finding> diagnose_config(const config::Loaded& loaded,
                                                   const std::optional<std::string>& path);

/// Patterns of routes that fit none of these events, the latest there are.
[[nodiscard]] std::vector<Finding> diagnose_patterns(const config::Settings& settings,
                                                     const std::vector<EventSummary>& latest);

}  // namespace postrider::cli
