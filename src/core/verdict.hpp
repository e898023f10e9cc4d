#pragma once
/// \file
/// What becomes of a delivery after an attempt. The whole retry policy is this one function.

#include <cstdint>
#include <span>
#include <string>

#include <postrider/clock.hpp>
#include <postrider/outcome.hpp>

namespace postrider::core {

struct Verdict {
  enum class Kind : std::uint8_t {
    completed,
    retry,      ///< an attempt was used; the next one after `wait`
    failed,     ///< a dead letter
    unchanged,  ///< no attempt was used: the destination, not the message, was at fault
  };
  Kind kind = Kind::unchanged;
  int attempts = 0;      ///< failed attempts, this one included
  milliseconds wait{0};  ///< with `retry`
  std::string code;      ///< with `retry` and `failed`
  std::string detail;
};

/// Judges `outcome` of a delivery that had failed `attempts` times before.
///
/// `outage`: the destination as a whole was at fault, so the attempt does not count. Only Postrider
/// retries, and the number of retries is the length of `retry_delays`.
[[nodiscard]] Verdict judge(const Outcome& outcome, bool outage, int attempts,
                            std::span<const milliseconds> retry_delays);

}  // namespace postrider::core
