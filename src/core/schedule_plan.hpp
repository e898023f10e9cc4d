#pragma once
/// \file
/// What a relay does for its schedules: from the states in the database and the time, which slots
/// are run now, which are passed over, and when to look again.
///
/// Nothing is remembered between two looks: the database's row says which slots are decided, and
/// whoever changes it first has decided.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/schedule.hpp>
#include <postrider/schedule_store_values.hpp>

#include "schedule/slots.hpp"

namespace postrider::core {

/// The slots that lie between two times.
struct DueSlots {
  /// A count beyond which nobody wants to know: a minute's schedule has 43,200 slots in 30 days.
  static constexpr std::int64_t most_counted = 100'000;

  std::vector<Timestamp> latest;  ///< oldest first, at most as many as were asked for
  std::int64_t older = 0;         ///< how many lie before these, counted up to `most_counted`
};

/// Slots after `after` and until `until`. Cost: of `latest`, and of what is counted.
[[nodiscard]] DueSlots due_slots(const schedule::Slots& slots, Timestamp after, Timestamp until,
                                 std::size_t most);

/// One thing to ask of the store.
struct PlannedFire {
  FireRequest request;
  std::int64_t passed_over = 0;  ///< slots that are decided by it and not run
};

struct SchedulePlan {
  std::vector<PlannedFire> fires;
  std::optional<Timestamp> next;  ///< the first slot after now, of any schedule; by the database
};

class ScheduleCore {
 public:
  /// Requires: `validate` finds nothing in any of them, and their names differ.
  explicit ScheduleCore(std::vector<Schedule> schedules);
  ScheduleCore(const ScheduleCore&) = delete;
  ScheduleCore& operator=(const ScheduleCore&) = delete;

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] const std::vector<Schedule>& schedules() const noexcept { return schedules_; }

  /// Schedules that are paused, or that another relay knows by a later definition, are left alone.
  [[nodiscard]] SchedulePlan plan(const ScheduleStates& states) const;

 private:
  struct Entry {
    const Schedule* schedule;
    std::string definition_hash;
    schedule::Slots slots;
  };

  [[nodiscard]] static std::optional<PlannedFire> fire_of(const Entry& entry,
                                                          const ScheduleState& state,
                                                          Timestamp now);

  std::vector<Schedule> schedules_;
  std::map<std::string, Entry> entries_;  // by name
};

}  // namespace postrider::core
