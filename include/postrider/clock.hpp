#pragma once
/// \file
/// Time and chance as constructor parameters, so that tests and the simulator own both.
///
/// Three kinds of time are kept apart:
///   - `Timestamp`, wall time, for people and for what the database stores;
///   - `Instant`, monotonic time of this process, for durations;
///   - the database's clock, which alone judges leases, due times and retention.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

namespace postrider {

/// Wall time in UTC with microseconds.
using Timestamp = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;
/// Monotonic time of this process.
using Instant = std::chrono::steady_clock::time_point;
using std::chrono::milliseconds;

/// Where a component reads the time.
///
/// Thread safety: all functions may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Timestamp wall() const = 0;
  [[nodiscard]] virtual Instant steady() const = 0;

  /// What a statement has to take for the database's clock: nothing in production (the server's own
  /// clock judges), the fake time in tests.
  [[nodiscard]] virtual std::optional<Timestamp> database_override() const = 0;
};

/// The machine's clocks. Ownership: a process-wide constant without state.
[[nodiscard]] const Clock& system_clock() noexcept;

/// Where a component takes chance from.
///
/// Thread safety: one thread at a time.
class Random {
 public:
  virtual ~Random() = default;
  /// 64 uniformly distributed bits.
  [[nodiscard]] virtual std::uint64_t next() = 0;
};

/// Seeded by the operating system. Not for keys or secrets.
[[nodiscard]] std::unique_ptr<Random> system_random();
/// The same sequence for the same seed, on every machine.
[[nodiscard]] std::unique_ptr<Random> seeded_random(std::uint64_t seed);

/// The moment at which a call that waits has to give up.
///
/// Always real monotonic time, also in tests with a fake clock: it bounds how long a thread blocks
/// in the kernel, and is no part of any decision.
class Deadline {
 public:
  /// `patience` from now; zero means: do not wait at all.
  [[nodiscard]] static Deadline after(milliseconds patience);

  /// Time left, never negative.
  [[nodiscard]] milliseconds remaining() const;
  [[nodiscard]] bool passed() const { return remaining() == milliseconds::zero(); }

 private:
  explicit Deadline(Instant at) : at_(at) {}
  Instant at_;
};

}  // namespace postrider
