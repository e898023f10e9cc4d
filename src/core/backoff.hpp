#pragma once
/// \file
/// How long to wait before something that failed is tried again.

#include <postrider/clock.hpp>

namespace postrider::core {

/// Doubles from `least` to `most`, and takes between half and all of it, so that processes that saw
/// the same outage do not knock at the same moment.
class Backoff {
 public:
  /// Requires: 0 < least <= most. Ownership: `random` is borrowed and must outlive this.
  Backoff(milliseconds least, milliseconds most, Random& random) noexcept
      : least_(least), most_(most), random_(&random) {}

  [[nodiscard]] milliseconds next();
  void reset() noexcept { failures_ = 0; }
  [[nodiscard]] bool failing() const noexcept { return failures_ > 0; }

 private:
  milliseconds least_;
  milliseconds most_;
  Random* random_;
  unsigned failures_ = 0;
};

}  // namespace postrider::core
