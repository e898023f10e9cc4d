#pragma once
/// \file
/// Runs the schedules of a relay: looks which slots are due, and has the store write their events.
/// A thread and a connection of its own; nothing that fails here ends a relay.

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/observer.hpp>
#include <postrider/relay_values.hpp>
#include <postrider/result.hpp>
#include <postrider/schedule.hpp>
#include <postrider/schedule_store.hpp>

#include "base/mutex.hpp"
#include "core/backoff.hpp"
#include "core/schedule_plan.hpp"

namespace postrider::engine {

/// Thread safety: `request_stop` from any thread; everything else from one at a time.
class ScheduleEngine {
 public:
  /// Clock, random and observer are borrowed.
  ScheduleEngine(std::unique_ptr<ScheduleStore> store, std::vector<Schedule> schedules,
                 const RelayOptions& options, const Clock& clock, Random& random,
                 Observer& observer);
  ScheduleEngine(const ScheduleEngine&) = delete;
  ScheduleEngine& operator=(const ScheduleEngine&) = delete;

  /// Runs what is due, once. Failures are notices.
  void run_once();
  /// The same, until `request_stop`. Blocking: a stop waits for a call of the store, at most
  /// `store_timeout`.
  void run();
  void request_stop() noexcept;

 private:
  struct Trouble {
    core::Backoff backoff;
    Instant again_at{};
  };

  [[nodiscard]] bool stops_within(milliseconds patience);
  /// How long until the next look.
  [[nodiscard]] milliseconds look();
  Result<void> register_unknown(const ScheduleStates& states);
  Result<void> register_all(std::vector<Schedule> schedules);
  Result<void> fire_all(const core::SchedulePlan& plan);
  Result<void> fire(const core::PlannedFire& planned);
  [[nodiscard]] bool waits(const std::string& schedule) const;
  void note_fired(const core::PlannedFire& planned, const FireAnswer& answer);
  void note_failed(const std::string& schedule, const Error& error);
  milliseconds note_store_failed(const Error& error);
  void note_store_works();
  [[nodiscard]] Deadline deadline() const { return Deadline::after(store_timeout_); }

  const std::unique_ptr<ScheduleStore> store_;
  const core::ScheduleCore core_;
  const milliseconds period_;
  const milliseconds store_timeout_;
  const Clock& clock_;
  Random& random_;
  Observer& observer_;
  core::Backoff store_backoff_;
  std::map<std::string, Trouble> troubles_;  // of schedules whose last run has failed
  bool registered_ = false;
  Mutex mutex_;
  Condition stopped_;
  bool stop_requested_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

}  // namespace postrider::engine
