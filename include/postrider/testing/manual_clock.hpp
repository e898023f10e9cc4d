#pragma once
/// \file
/// A clock that stands still until a test moves it.

#include <atomic>
#include <cstdint>

#include <postrider/clock.hpp>

namespace postrider::testing {

/// Wall, monotonic and database time move together. Thread safety: any thread.
class ManualClock final : public Clock {
 public:
  /// 2026-01-01T00:00:00Z
  static constexpr std::int64_t start_us = 1'767'225'600'000'000;

  [[nodiscard]] Timestamp wall() const override {
    return Timestamp(std::chrono::microseconds(start_us + elapsed_us_.load()));
  }
  [[nodiscard]] Instant steady() const override {
    return Instant(std::chrono::microseconds(start_us + elapsed_us_.load()));
  }
  [[nodiscard]] std::optional<Timestamp> database_override() const override { return wall(); }

  void advance(std::chrono::microseconds by) { elapsed_us_ += by.count(); }

 private:
  std::atomic<std::int64_t> elapsed_us_{0};
};

}  // namespace postrider::testing
