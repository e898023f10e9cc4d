#include "core/backoff.hpp"

#include <algorithm>
#include <cstdint>

namespace postrider::core {

milliseconds Backoff::next() {
  constexpr unsigned most_doublings = 20;
  const auto doubled = least_ * (std::int64_t{1} << std::min(failures_, most_doublings));
  failures_ = std::min(failures_ + 1, most_doublings);
  const auto whole = std::min<milliseconds>(doubled, most_);
  const auto half = whole / 2;
  const auto choices = static_cast<std::uint64_t>((whole - half).count() + 1);
  return half + milliseconds(static_cast<std::int64_t>(random_->next() % choices));
}

}  // namespace postrider::core
