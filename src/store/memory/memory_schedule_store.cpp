#include <algorithm>
#include <utility>

#include <postrider/schedule_store.hpp>

#include "store/memory/memory_database.hpp"
#include "store/memory/memory_events.hpp"

namespace postrider::testing {
namespace {

class MemoryScheduleStore final : public ScheduleStore {
 public:
  explicit MemoryScheduleStore(std::shared_ptr<MemoryDatabase> database)
      : database_(std::move(database)) {}

  Result<void> check_schema(Deadline /*deadline*/) override { return {}; }

  Result<void> register_all(const RegisterRequest& request, Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    const auto now = database_->time_of(request.now);
    for (const auto& schedule : request.schedules)
      register_one(schedule, false, now);
    return {};
  }

  Result<ScheduleStates> states(std::optional<Timestamp> now, Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    ScheduleStates states;
    states.now = database_->time_of(now);
    for (const auto& [name, row] : database_->tables.schedules())
      states.schedules.push_back(row.state);
    return states;
  }

  Result<FireAnswer> fire(const FireRequest& request, Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    auto& schedules = database_->tables.schedules();
    const auto found = schedules.find(request.name);
    FireAnswer answer;
    if (found == schedules.end() || !may_fire(found->second.state, request)) return answer;
    auto& [state, slots] = found->second;
    std::vector<NewEvent> events;
    for (const auto& slot : request.slots) {
      if (!slots.contains(slot.at)) events.push_back(slot.event);
    }
    const auto ids = insert_events(*database_, events);
    if (!ids) return ids.error();
    auto id = ids->begin();
    for (const auto& slot : request.slots) {
      answer.event_ids.emplace_back();
      if (!slots.insert(slot.at).second) continue;
      state.last_slot_at = slot.at;
      state.last_event_id = *id;
      answer.event_ids.back() = *id++;
    }
    while (slots.size() > kept_slots)
      slots.erase(slots.begin());
    state.decided_until = request.decide_until;
    answer.fired = true;
    return answer;
  }

  Result<EventId> run(const Schedule& schedule, const Operator& who, std::optional<Timestamp> now,
                      Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    const auto at = database_->time_of(now);
    auto& state = register_one(schedule, true, at);
    const auto event = event_of(schedule, at);
    const auto ids = insert_events(*database_, {&event, 1});
    if (!ids) return ids.error();
    state.last_slot_at = at;
    state.last_event_id = ids->front();
    database_->tables.audit().push_back({at, "schedule_run", schedule.name, who});
    return ids->front();
  }

  Result<bool> pause(const std::string& name, const Operator& who, std::optional<Timestamp> now,
                     Deadline /*deadline*/) override {
    return change(name, "schedule_pause", who, now, [&](ScheduleState& state, Timestamp at) {
      if (state.paused_at) return false;
      state.paused_at = at;
      state.paused_by = who.name;
      state.reason = who.reason;
      return true;
    });
  }

  Result<bool> resume(const std::string& name, const Operator& who, std::optional<Timestamp> now,
                      Deadline /*deadline*/) override {
    return change(name, "schedule_resume", who, now, [](ScheduleState& state, Timestamp at) {
      if (!state.paused_at) return false;
      state.paused_at.reset();
      state.paused_by.clear();
      state.reason.clear();
      state.decided_until = at;
      return true;
    });
  }

  Result<bool> forget(const std::string& name, const Operator& who, std::optional<Timestamp> now,
                      Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    if (database_->tables.schedules().erase(name) == 0) return false;
    database_->tables.audit().push_back({database_->time_of(now), "schedule_forget", name, who});
    return true;
  }

 private:
  static bool may_fire(const ScheduleState& state, const FireRequest& request) {
    return !state.paused_at && state.definition_hash == request.definition_hash &&
           state.decided_until == request.decided_until;
  }

  ScheduleState& register_one(const Schedule& schedule, bool only_new, Timestamp now)
      POSTRIDER_REQUIRES(database_->mutex) {
    const auto [found, is_new] = database_->tables.schedules().try_emplace(schedule.name);
    auto& state = found->second.state;
    if (is_new) state.created_at = now;
    if (!is_new && only_new) return state;
    const bool other_times = state.cron != schedule.cron || state.time_zone != schedule.time_zone;
    if (is_new || other_times) state.decided_until = now;
    state.name = schedule.name;
    state.cron = schedule.cron;
    state.time_zone = schedule.time_zone;
    state.type = schedule.type;
    state.missed = schedule.missed;
    state.most_missed = schedule.most_missed;
    state.definition_hash = definition_hash(schedule);
    return state;
  }

  /// `apply` tells whether it changed anything.
  template <class Apply>
  Result<bool> change(const std::string& name, std::string action, const Operator& who,
                      std::optional<Timestamp> now, Apply apply) {
    const MutexLock lock(database_->mutex);
    auto& schedules = database_->tables.schedules();
    const auto found = schedules.find(name);
    const auto at = database_->time_of(now);
    if (found == schedules.end() || !apply(found->second.state, at)) return false;
    database_->tables.audit().push_back({at, std::move(action), name, who});
    return true;
  }

  std::shared_ptr<MemoryDatabase> database_;
};

}  // namespace

std::unique_ptr<ScheduleStore> make_memory_schedule_store(
    std::shared_ptr<MemoryDatabase> database) {
  return std::make_unique<MemoryScheduleStore>(std::move(database));
}

}  // namespace postrider::testing
