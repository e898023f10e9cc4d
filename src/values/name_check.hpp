#pragma once
/// \file
/// The rule for everything that has a name: bounded, valid UTF-8, no control characters.

#include <cstddef>
#include <string>
#include <string_view>

#include <postrider/result.hpp>

namespace postrider {

/// The rejection of a value given by the application.
[[nodiscard]] Error invalid_value(std::string message);
/// The same with both numbers.
[[nodiscard]] Error over_limit(std::string_view what, std::size_t size, std::size_t limit,
                               std::string_view remedy);

/// Errors: `invalid_argument` with the position.
[[nodiscard]] Result<void> check_text(std::string_view what, std::string_view text);
/// Besides: not empty and at most `most_bytes`. Errors: also `limit_exceeded`.
[[nodiscard]] Result<void> check_name(std::string_view what, std::string_view name,
                                      std::size_t most_bytes);

}  // namespace postrider
