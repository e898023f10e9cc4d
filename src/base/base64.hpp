#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace postrider {

/// RFC 4648, with padding.
[[nodiscard]] std::string encode_base64(std::string_view bytes);

/// Nothing when `text` is not what `encode_base64` would have made of some bytes.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);

}  // namespace postrider
