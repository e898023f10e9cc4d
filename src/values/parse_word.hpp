#pragma once
/// \file
/// From a word to the value that it stands for.

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace postrider {

/// The one of `values` whose `to_string` is `text`; none when there is none.
template <class Enum, std::size_t count>
[[nodiscard]] std::optional<Enum> parse_word(std::string_view text,
                                             const std::array<Enum, count>& values) noexcept {
  for (const auto value : values) {
    if (to_string(value) == text) return value;
  }
  return std::nullopt;
}

}  // namespace postrider
