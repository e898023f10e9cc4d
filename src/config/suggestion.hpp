#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace postrider::config {

/// The one of `known` that `typed` was most likely meant to be; none when nothing is near.
[[nodiscard]] std::optional<std::string> nearest(std::string_view typed,
                                                 const std::vector<std::string>& known);

}  // namespace postrider::config
