#pragma once
/// \file
/// The way back from base/timestamp_text.hpp, for databases that keep times as text.
///
/// Thread safety: functions without state.

#include <optional>
#include <string_view>

#include <postrider/clock.hpp>

namespace postrider::store {

/// Reads exactly "2026-01-31T12:00:00.123456Z"; nothing for any other form and for a date or time
/// of day that does not exist.
[[nodiscard]] std::optional<Timestamp> parse_timestamp(std::string_view text) noexcept;

}  // namespace postrider::store
