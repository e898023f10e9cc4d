#pragma once
/// \file
/// Headers as the text of one JSON object: how every SQL store keeps them.
///
/// Thread safety: functions without state.

#include <cstddef>
#include <string>
#include <string_view>

#include <postrider/event.hpp>
#include <postrider/result.hpp>

namespace postrider::store {

/// Longest header text that is decoded. Source: 64 headers of 8 KiB (`EventLimits`) in which every
/// byte was written as a six-character escape.
inline constexpr std::size_t most_header_text_bytes = 4U << 20U;

/// One JSON object with the names in order. Errors: `invalid_argument` for a name or value that is
/// not UTF-8, as JSON has no form for it.
[[nodiscard]] Result<std::string> encode_headers(const Headers& headers);

/// Reads one JSON object.
///
/// Strings are taken as they are. Numbers, `true` and `false`, which people write in raw SQL,
/// become their own text with every digit.
///
/// Errors: `invalid_argument` for anything else: another type, a name that occurs twice, a nested
/// value, text that is not JSON or too long.
[[nodiscard]] Result<Headers> decode_headers(std::string_view json);

}  // namespace postrider::store
