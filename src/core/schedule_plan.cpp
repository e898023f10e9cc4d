#include "core/schedule_plan.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace postrider::core {
namespace {

// The first look back; each further one is twice as long.
constexpr milliseconds first_look_back = std::chrono::minutes(2);

std::size_t most_run(const Schedule& schedule) {
  return schedule.missed == Missed::all ? static_cast<std::size_t>(schedule.most_missed) : 1;
}

// Slots that were seen in time are run whatever the policy says.
bool is_run(const Schedule& schedule, Timestamp slot, Timestamp now) {
  return schedule.missed != Missed::skip || now - slot < Schedule::on_time;
}

void keep_earlier(std::optional<Timestamp>& next, std::optional<Timestamp> slot) {
  if (slot && (!next || *slot < *next)) next = slot;
}

}  // namespace

DueSlots due_slots(const schedule::Slots& slots, Timestamp after, Timestamp until,
                   std::size_t most) {
  DueSlots due;
  // From the end backwards, by longer and longer looks: after a year nobody walks through the year
  // to find the last ten slots.
  auto look_back = first_look_back;
  auto from = until;
  while (from > after && due.latest.size() < most) {
    from = until - after > look_back ? until - look_back : after;
    look_back *= 2;
    due.latest.clear();
    for (auto slot = slots.next(from); slot && *slot <= until; slot = slots.next(*slot))
      due.latest.push_back(*slot);
  }
  const auto extra = due.latest.size() - std::min(due.latest.size(), most);
  due.latest.erase(due.latest.begin(), due.latest.begin() + static_cast<std::ptrdiff_t>(extra));
  if (due.latest.empty()) return due;
  for (auto slot = slots.next(after);
       slot && *slot < due.latest.front() && due.older < DueSlots::most_counted;
       slot = slots.next(*slot))
    ++due.older;
  return due;
}

ScheduleCore::ScheduleCore(std::vector<Schedule> schedules) : schedules_(std::move(schedules)) {
  for (const auto& each : schedules_) {
    auto slots = schedule::Slots::make(each.cron, each.time_zone);
    POSTRIDER_ASSERT(slots.ok());
    entries_.emplace(each.name, Entry{&each, definition_hash(each), *std::move(slots)});
  }
  POSTRIDER_ASSERT(entries_.size() == schedules_.size());
}

SchedulePlan ScheduleCore::plan(const ScheduleStates& states) const {
  SchedulePlan plan;
  for (const auto& state : states.schedules) {
    const auto found = entries_.find(state.name);
    if (found == entries_.end() || state.paused_at) continue;
    const auto& entry = found->second;
    if (entry.definition_hash != state.definition_hash) continue;
    if (auto fire = fire_of(entry, state, states.now)) plan.fires.push_back(*std::move(fire));
    keep_earlier(plan.next, entry.slots.next(std::max(states.now, state.decided_until)));
  }
  return plan;
}

std::optional<PlannedFire> ScheduleCore::fire_of(const Entry& entry, const ScheduleState& state,
                                                 Timestamp now) {
  const auto& schedule = *entry.schedule;
  auto due = due_slots(entry.slots, state.decided_until, now, most_run(schedule));
  if (due.latest.empty()) return std::nullopt;
  PlannedFire fire;
  fire.request.name = schedule.name;
  fire.request.definition_hash = entry.definition_hash;
  fire.request.decided_until = state.decided_until;
  fire.request.decide_until = due.latest.back();
  fire.passed_over = due.older;
  for (const auto slot : due.latest) {
    if (is_run(schedule, slot, now)) {
      fire.request.slots.push_back({slot, event_of(schedule, slot)});
    } else {
      ++fire.passed_over;
    }
  }
  return fire;
}

}  // namespace postrider::core
