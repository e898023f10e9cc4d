#pragma once
/// \file
/// Bounds of a transport, checked before a message leaves: a broker answers an oversized one by
/// cutting the connection, and with it everything else that is in flight.

#include <cstddef>
#include <string_view>

#include <postrider/result.hpp>

namespace postrider::publisher {

/// Errors: `limit_exceeded` with `reject`, and both numbers, when `bytes` is over `most`. `what`
/// begins the sentence: "The payload".
[[nodiscard]] Result<void> check_bytes(std::string_view what, std::size_t bytes, std::size_t most);

}  // namespace postrider::publisher
