#include "publisher/common/message_limits.hpp"

#include <fmt/format.h>

namespace postrider::publisher {

Result<void> check_bytes(std::string_view what, std::size_t bytes, std::size_t most) {
  if (bytes <= most) return {};
  return Error{
      ErrorCode::limit_exceeded, Disposition::reject,
      fmt::format("{} has {} bytes; this destination takes at most {}. Write less, or send "
                  "the event by another route.",
                  what, bytes, most),
      "publisher", ""};
}

}  // namespace postrider::publisher
