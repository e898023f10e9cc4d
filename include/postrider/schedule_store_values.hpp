#pragma once
/// \file
/// What `ScheduleStore` is asked and answers.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/event.hpp>
#include <postrider/ids.hpp>
#include <postrider/schedule.hpp>

namespace postrider {

/// A schedule as the database has it.
struct ScheduleState {
  std::string name;
  std::string cron;
  std::string time_zone;
  std::string type;
  Missed missed = Missed::one;
  int most_missed = 0;
  std::string definition_hash;  ///< of the definition that was registered last
  /// Slots up to here are decided: run, passed over, or before the schedule's time.
  Timestamp decided_until;
  std::optional<Timestamp> last_slot_at;  ///< of the last run
  std::optional<EventId> last_event_id;   ///< likewise; it may have been purged since
  std::optional<Timestamp> paused_at;     ///< set: nothing is run
  std::string paused_by;
  std::string reason;
  Timestamp created_at;  ///< when it was first seen
};

struct ScheduleStates {
  std::vector<ScheduleState> schedules;  ///< by name
  Timestamp now;                         ///< by which they are to be judged
};

struct RegisterRequest {
  std::vector<Schedule> schedules;  ///< without faults, with different names
  std::optional<Timestamp> now;
};

/// Runs slots of one schedule, if nobody else has meanwhile.
struct FireRequest {
  std::string name;
  std::string definition_hash;  ///< the registered definition must still be this one
  Timestamp decided_until;      ///< and this what the caller decided from
  Timestamp decide_until;       ///< this is what it becomes; later
  struct Slot {
    Timestamp at;
    NewEvent event;  ///< without an id
  };
  std::vector<Slot> slots;  ///< oldest first; may be empty, to pass over some
  std::optional<Timestamp> now;
};

struct FireAnswer {
  /// False: another relay was first, or the schedule is paused, changed or forgotten. Nothing was
  /// written.
  bool fired = false;
  /// The events, in the order of the slots. One that has run before has none.
  std::vector<std::optional<EventId>> event_ids;
};

}  // namespace postrider
