#pragma once
#include <optional>
#include <string>
#include <string_view>

#include <postrider/clock.hpp>

namespace postrider {

/// "2026-01-01T00:00:00.000000Z": RFC 3339 in UTC, always with six digits of the second, so that
/// texts sort as the times do.
[[nodiscard]] std::string timestamp_text(Timestamp time);

/// The way back: reads exactly that form; nothing for any other, and for a date or time of day that
/// does not exist.
[[nodiscard]] std::optional<Timestamp> parse_timestamp(std::string_view text) noexcept;

}  // namespace postrider
