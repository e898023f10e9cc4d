#pragma once
/// \file
/// Times and documents in the form in which every command prints them.

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include <postrider/clock.hpp>

namespace postrider::cli {

/// A whole document. What is no UTF-8 is replaced.
[[nodiscard]] std::string printed(const nlohmann::ordered_json& document);

/// "2026-01-01T00:00:00.000000Z"; null, or empty, when there is none.
[[nodiscard]] nlohmann::ordered_json json_if(const std::optional<Timestamp>& time);
[[nodiscard]] std::string text_if(const std::optional<Timestamp>& time);

}  // namespace postrider::cli
