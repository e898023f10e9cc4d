#pragma once
/// \file
/// Sharing a database with others during a command of many transactions.

#include <algorithm>
#include <chrono>
#include <thread>

#include <postrider/clock.hpp>

namespace postrider::cli {

/// Leaves others as much time as each turn took, up to a bound: on SQLite a relay or an application
/// that waits for the lock would else never find it free.
class FairTurns {
 public:
  explicit FairTurns(const Clock& clock) : clock_(&clock), turn_began_(clock.steady()) {}

  /// Ends a turn, waits, and begins the next one.
  void next() {
    constexpr Instant::duration longest_wait = std::chrono::milliseconds(100);
    std::this_thread::sleep_for(std::min(clock_->steady() - turn_began_, longest_wait));
    turn_began_ = clock_->steady();
  }

 private:
  const Clock* clock_;
  Instant turn_began_;
};

}  // namespace postrider::cli
