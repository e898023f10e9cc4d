#pragma once
/// \file
/// What people give on the command line, as values. Each refusal says what to write instead.

#include <optional>
#include <string>
#include <string_view>

#include <postrider/event.hpp>
#include <postrider/ids.hpp>
#include <postrider/result.hpp>

namespace postrider::cli {

/// TYPE/ID; the id may hold further slashes.
[[nodiscard]] Result<Aggregate> aggregate_of(const std::string& given);
/// `of` says whose: "an event", "a delivery".
[[nodiscard]] Result<Uuid> id_of(const std::string& given, std::string_view of);
[[nodiscard]] Result<milliseconds> duration_of(const std::string& given, std::string_view option);

/// Nothing for an option that was not given.
[[nodiscard]] inline std::optional<std::string> if_given(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

}  // namespace postrider::cli
