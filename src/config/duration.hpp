#pragma once
#include <optional>
#include <string>
#include <string_view>

#include <postrider/clock.hpp>

namespace postrider::config {

/// Reads "500ms", "5s", "2m", "1h", "7d" or a whole number of seconds; nothing otherwise, and
/// nothing for what does not fit. Never negative.
[[nodiscard]] std::optional<milliseconds> parse_duration(std::string_view text);

/// The shortest text that `parse_duration` reads back, in the largest unit without a fraction.
[[nodiscard]] std::string duration_text(milliseconds duration);

}  // namespace postrider::config
