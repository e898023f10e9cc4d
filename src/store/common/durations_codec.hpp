#pragma once
/// \file
/// A list of durations as the text of one JSON array of whole milliseconds: how every SQL store
/// keeps `retry_delays`.
///
/// Thread safety: functions without state.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/result.hpp>

namespace postrider::store {

/// "[]", "[1000,5000]".
[[nodiscard]] std::string encode_durations(std::span<const milliseconds> durations);

/// Errors: `invalid_argument` for anything but an array of at most `Route::most_retry_delays` whole
/// numbers, none negative.
[[nodiscard]] Result<std::vector<milliseconds>> decode_durations(std::string_view json);

}  // namespace postrider::store
