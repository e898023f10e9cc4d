#pragma once
/// \file
/// How long a coordinator waits for what its lanes report.

#include <algorithm>
#include <chrono>
#include <optional>

#include <postrider/clock.hpp>

namespace postrider::engine {

/// Until `wake`, and no longer than a bound before which nothing has to happen: a fake clock would
/// make the wait endless.
[[nodiscard]] inline milliseconds patience_until(std::optional<Instant> wake, Instant now) {
  constexpr milliseconds longest{1000};
  if (!wake) return longest;
  return std::clamp(std::chrono::ceil<milliseconds>(*wake - now), milliseconds(0), longest);
}

}  // namespace postrider::engine
