#pragma once
/// \file
/// A list of names as the text of one JSON array of strings: how every SQL store keeps the queues
/// of a worker.
///
/// Thread safety: functions without state.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/result.hpp>

namespace postrider::store {

/// "[]", "[\"mail\",\"shipping\"]". Bytes that are not UTF-8 are replaced.
[[nodiscard]] std::string encode_strings(std::span<const std::string> strings);

/// Errors: `invalid_argument` for anything but an array of strings.
[[nodiscard]] Result<std::vector<std::string>> decode_strings(std::string_view json);

}  // namespace postrider::store
