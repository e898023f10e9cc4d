#pragma once
/// \file
/// Waiting with an end for what other processes do.

#include <chrono>
#include <thread>

namespace postrider::testing {

/// Far more than anything here takes on a busy machine; only a fault waits for so long.
inline constexpr std::chrono::seconds process_patience{60};

/// False when the condition does not come true in time.
template <class Condition>
[[nodiscard]] bool comes_true(Condition condition,
                              std::chrono::milliseconds patience = process_patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // Polls external processes.
  }
  return true;
}

}  // namespace postrider::testing
