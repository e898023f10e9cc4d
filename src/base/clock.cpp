#include <postrider/clock.hpp>

#include <algorithm>

namespace postrider {
namespace {

class SystemClock final : public Clock {
 public:
  Timestamp wall() const override {
    return std::chrono::time_point_cast<std::chrono::microseconds>(
        std::chrono::system_clock::now());
  }
  Instant steady() const override { return std::chrono::steady_clock::now(); }
  std::optional<Timestamp> database_override() const override { return std::nullopt; }
};

}  // namespace

const Clock& system_clock() noexcept {
  static const SystemClock clock;
  return clock;
}

Deadline Deadline::after(milliseconds patience) {
  return Deadline(std::chrono::steady_clock::now() + patience);
}

milliseconds Deadline::remaining() const {
  const auto left = std::chrono::ceil<milliseconds>(at_ - std::chrono::steady_clock::now());
  return std::max(left, milliseconds::zero());
}

}  // namespace postrider
