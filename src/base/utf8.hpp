#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace postrider {

/// Position of the first byte that is not part of valid UTF-8 (overlong forms, surrogates and code
/// points above U+10FFFF are invalid); none when the text is valid. Source: RFC 3629.
[[nodiscard]] std::optional<std::size_t> first_invalid_utf8(std::string_view text) noexcept;

/// Position of the first control character (below U+0020, or U+007F); none when there is none.
[[nodiscard]] std::optional<std::size_t> first_control(std::string_view text) noexcept;

/// The longest prefix of at most `bytes` bytes that does not cut a character in two.
[[nodiscard]] std::string_view utf8_prefix(std::string_view text, std::size_t bytes) noexcept;

/// `text` as it can be stored and shown anywhere: valid UTF-8 without control characters, at most
/// `bytes` long. Control characters become spaces and what is no character becomes '?'.
/// Cost: of what is kept, whatever the length of `text`.
[[nodiscard]] std::string clean_text(std::string_view text, std::size_t bytes);

}  // namespace postrider
