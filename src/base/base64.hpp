#pragma once
#include <string>
#include <string_view>

namespace postrider {

/// RFC 4648, with padding.
[[nodiscard]] std::string encode_base64(std::string_view bytes);

}  // namespace postrider
