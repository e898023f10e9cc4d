#pragma once
#include <algorithm>
#include <cstddef>

#include <postrider/clock.hpp>

namespace postrider::http {

/// Spreads the begins of requests evenly: no burst, also not after a pause.
class Pace {
 public:
  /// 0: no limit.
  explicit Pace(std::size_t per_second) noexcept {
    if (per_second > 0) gap_ = std::chrono::nanoseconds(std::chrono::seconds(1)) / per_second;
  }

  /// How long until the next one may begin; zero: now.
  [[nodiscard]] milliseconds wait(Instant now) const noexcept {
    return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(next_ - now));
  }
  void on_begin(Instant now) noexcept { next_ = now + gap_; }

 private:
  std::chrono::nanoseconds gap_{0};
  Instant next_{};
};

}  // namespace postrider::http
