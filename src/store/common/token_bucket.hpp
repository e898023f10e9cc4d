#pragma once
/// \file
/// A queue's rate limit: a bucket of tokens that fills by the database's clock. Each dispatch takes
/// one. A full bucket holds one limit, so a pause saves that much and no more.
///
/// Thread safety: a value.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include <postrider/clock.hpp>

namespace postrider::store {

class TokenBucket {
 public:
  /// Fills it up to `now`. One that was never taken from is full; a clock that went back fills
  /// nothing.
  TokenBucket(int limit, milliseconds period, double tokens, std::optional<Timestamp> refilled_at,
              Timestamp now)
      : limit_(limit), per_ms_(limit_ / static_cast<double>(std::max(period.count(), most_once))) {
    if (!refilled_at) {
      tokens_ = limit_;
      return;
    }
    const std::chrono::duration<double, std::milli> since = now - *refilled_at;
    tokens_ = std::min(limit_, tokens + std::max(since.count(), 0.0) * per_ms_);
  }

  /// False: nothing may be dispatched now.
  bool take() {
    if (tokens_ + rounding < 1) return false;
    tokens_ = std::max(tokens_ - 1, 0.0);
    return true;
  }

  /// Until `take` may succeed, at least a millisecond.
  [[nodiscard]] milliseconds next_in() const {
    const double wait = std::ceil((1 - tokens_) / per_ms_ - rounding);
    return milliseconds(std::max(static_cast<milliseconds::rep>(wait), most_once));
  }

  [[nodiscard]] double tokens() const noexcept { return tokens_; }

 private:
  /// Sums of parts of a token come out a little below the whole.
  static constexpr double rounding = 1e-6;
  static constexpr milliseconds::rep most_once = 1;

  double limit_;
  double per_ms_;
  double tokens_ = 0;
};

}  // namespace postrider::store
