#pragma once
/// \file
/// The seam between schedules and a database: `ScheduleStore`.
///
/// Rows of `outbox_schedules`, one per schedule ever seen, and of `outbox_schedule_slots`, one per
/// run, unique by schedule and slot; the latest `kept_slots` of each schedule are kept.
///
/// One call is one transaction, and the rules of `Store` hold: calls block, each with a deadline;
/// `now` is the time to judge by, empty means the database's own clock; nothing stays locked.
/// Changes by people are written to `postrider_audit`; one that changes nothing leaves no line.
///
/// Ownership: as of `Store`. Thread safety: one thread at a time per object.

#include <cstddef>
#include <optional>
#include <string>

#include <postrider/clock.hpp>
#include <postrider/operations.hpp>
#include <postrider/result.hpp>
#include <postrider/schedule_store_values.hpp>

namespace postrider {

class ScheduleStore {
 public:
  /// More than a schedule can run at once, by far.
  static constexpr std::size_t kept_slots = 1000;

  virtual ~ScheduleStore() = default;

  /// As of `Store`.
  virtual Result<void> check_schema(Deadline deadline) = 0;

  /// Makes the database know these definitions; others stay as they are. A new one is decided until
  /// now, and so is one whose expression or zone has changed: no slot of the past is ever run.
  /// Idempotent.
  virtual Result<void> register_all(const RegisterRequest& request, Deadline deadline) = 0;

  /// Cost: reads all rows of schedules once, and none of slots.
  virtual Result<ScheduleStates> states(std::optional<Timestamp> now, Deadline deadline) = 0;

  /// Writes the slots with their events, or nothing. Of callers that decided from the same state
  /// exactly one writes; the others wait for it, and are told.
  ///
  /// Errors: also what the insert of an event may be answered with.
  virtual Result<FireAnswer> fire(const FireRequest& request, Deadline deadline) = 0;

  /// Runs it once, now, beside its slots, and even while it is paused. Registers it when it is not
  /// known yet. Requires: `schedule` has no faults.
  virtual Result<EventId> run(const Schedule& schedule, const Operator& who,
                              std::optional<Timestamp> now, Deadline deadline) = 0;

  /// Lets it wait; the answer tells whether that changed anything, as with the other two.
  virtual Result<bool> pause(const std::string& name, const Operator& who,
                             std::optional<Timestamp> now, Deadline deadline) = 0;
  /// Lets it go on with the first slot after now: what passed meanwhile is not run.
  virtual Result<bool> resume(const std::string& name, const Operator& who,
                              std::optional<Timestamp> now, Deadline deadline) = 0;
  /// Deletes what is known of it. Events that it has made stay.
  virtual Result<bool> forget(const std::string& name, const Operator& who,
                              std::optional<Timestamp> now, Deadline deadline) = 0;
};

}  // namespace postrider
