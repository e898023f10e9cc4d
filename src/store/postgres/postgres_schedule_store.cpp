#include <utility>

#include <postrider/store/postgres.hpp>

#include "store/postgres/postgres_connection.hpp"
#include "store/postgres/postgres_event_columns.hpp"
#include "store/postgres/postgres_schema.hpp"

namespace postrider {
namespace store::postgres {
namespace {

ScheduleState read_schedule(const Rows& rows, int row) {
  ScheduleState state;
  state.name = rows.text(row, 0);
  state.cron = rows.text(row, 1);
  state.time_zone = rows.text(row, 2);
  state.type = rows.text(row, 3);
  state.missed = parse_missed(rows.text(row, 4)).value_or(state.missed);
  state.most_missed = rows.small_integer(row, 5);
  state.definition_hash = rows.text(row, 6);
  state.decided_until = rows.time(row, 7);
  state.last_slot_at = rows.time_if(row, 8);
  if (const auto id = rows.uuid_if(row, 9)) state.last_event_id = EventId(*id);
  state.paused_at = rows.time_if(row, 10);
  state.paused_by = rows.text(row, 11);
  state.reason = rows.text(row, 12);
  state.created_at = rows.time(row, 13);
  return state;
}

Call schedule_call(std::string_view statement, const std::optional<Timestamp>& now,
                   const std::string& name) {
  Call call{statement};
  call.parameters.time_if(now).text(name);
  return call;
}

Call register_call(const Schedule& schedule, bool only_new, const std::optional<Timestamp>& now) {
  auto call = schedule_call("schedules_register", now, schedule.name);
  call.parameters.text(schedule.cron).text(schedule.time_zone).text(schedule.type);
  call.parameters.text(to_string(schedule.missed)).small_integer(schedule.most_missed);
  call.parameters.text(definition_hash(schedule)).boolean(only_new);
  return call;
}

Call decide_call(const FireRequest& request) {
  Call call{"schedules_decide"};
  call.parameters.text(request.name).text(request.definition_hash);
  call.parameters.time(request.decided_until).time(request.decide_until);
  return call;
}

Call ran_call(const std::string& name, const EventId& id, std::optional<Timestamp> slot,
              const std::optional<Timestamp>& now) {
  auto call = schedule_call("schedules_ran", now, name);
  call.parameters.uuid(id.value()).time_if(slot);
  return call;
}

Call trim_call(const std::string& name) {
  Call call{"schedules_trim_slots"};
  call.parameters.text(name).integer(static_cast<std::int64_t>(ScheduleStore::kept_slots));
  return call;
}

/// One line for the audit, beside who and why.
struct ScheduleAuditLine {
  std::string_view action;
  std::string schedule;
  std::string detail = {};
};

Call audit_call(const ScheduleAuditLine& line, const Operator& who,
                const std::optional<Timestamp>& now) {
  Call call{"audit_insert"};
  call.parameters.time_if(now).text(who.name).text(line.action).text(line.schedule);
  call.parameters.text(who.reason).text(line.detail);
  return call;
}

class PostgresScheduleStore final : public ScheduleStore {
 public:
  explicit PostgresScheduleStore(PostgresOptions options)
      : connection_(std::move(options), Use::relay), random_(system_random()) {}

  Result<void> check_schema(Deadline deadline) override {
    return compare_schema(connection_, deadline);
  }

  Result<void> register_all(const RegisterRequest& request, Deadline deadline) override {
    if (request.schedules.empty()) return {};
    std::vector<Call> calls;
    for (const auto& schedule : request.schedules)
      calls.push_back(register_call(schedule, false, request.now));
    const auto done = connection_.write(calls, deadline);
    if (!done) return done.error();
    return {};
  }

  Result<ScheduleStates> states(std::optional<Timestamp> now, Deadline deadline) override {
    std::vector<Call> calls = {{"schedules_now"}, {"schedules_list"}};
    calls[0].parameters.time_if(now);
    const auto results = connection_.read(calls, deadline);
    if (!results) return results.error();
    ScheduleStates states;
    states.now = results->at(0).time(0, 0);
    const auto& rows = results->at(1);
    for (int row = 0; row < rows.size(); ++row)
      states.schedules.push_back(read_schedule(rows, row));
    return states;
  }

  Result<FireAnswer> fire(const FireRequest& request, Deadline deadline) override {
    if (auto begun = connection_.begin(deadline); !begun) return begun.error();
    const auto decided = connection_.run(std::vector<Call>{decide_call(request)}, deadline);
    if (!decided) return decided.error();
    FireAnswer answer;
    if (decided->front().empty()) {
      connection_.rollback(deadline);
      return answer;
    }
    answer.fired = true;
    auto ids = insert_slots(request, deadline);
    if (!ids) return ids.error();
    answer.event_ids = *std::move(ids);
    if (auto written = write_events(request, answer.event_ids, deadline); !written) {
      return written.error();
    }
    if (auto committed = connection_.commit(deadline); !committed) return committed.error();
    return answer;
  }

  // The row first, as in `fire`: two that lock in different orders would lock each other out.
  Result<EventId> run(const Schedule& schedule, const Operator& who, std::optional<Timestamp> now,
                      Deadline deadline) override {
    const EventId id(ids_.next());
    if (auto begun = connection_.begin(deadline); !begun) return begun.error();
    const std::vector<Call> calls = {register_call(schedule, true, now),
                                     ran_call(schedule.name, id, std::nullopt, now)};
    const auto ran = connection_.run(calls, deadline);
    if (!ran) return ran.error();
    NewEventColumns columns;
    const auto event = event_of(schedule, ran->back().time(0, 0));
    if (auto added = columns.add(event, id); !added) return refuse(added.error(), deadline);
    const ScheduleAuditLine line{"schedule_run", schedule.name, id.value().to_string()};
    const auto written =
        connection_.run(std::vector<Call>{{"events_insert", columns.insert_parameters()},
                                          audit_call(line, who, now)},
                        deadline);
    if (!written) return written.error();
    if (auto committed = connection_.commit(deadline); !committed) return committed.error();
    return id;
  }

  Result<bool> pause(const std::string& name, const Operator& who, std::optional<Timestamp> now,
                     Deadline deadline) override {
    auto call = schedule_call("schedules_pause", now, name);
    call.parameters.text(who.name).text(who.reason);
    return change(std::move(call), {"schedule_pause", name}, who, now, deadline);
  }

  Result<bool> resume(const std::string& name, const Operator& who, std::optional<Timestamp> now,
                      Deadline deadline) override {
    return change(schedule_call("schedules_resume", now, name), {"schedule_resume", name}, who, now,
                  deadline);
  }

  Result<bool> forget(const std::string& name, const Operator& who, std::optional<Timestamp> now,
                      Deadline deadline) override {
    Call call{"schedules_forget"};
    call.parameters.text(name);
    return change(std::move(call), {"schedule_forget", name}, who, now, deadline);
  }

 private:
  using EventIds = std::vector<std::optional<EventId>>;

  Error refuse(const Error& error, Deadline deadline) {
    connection_.rollback(deadline);
    return error;
  }

  Result<EventIds> insert_slots(const FireRequest& request, Deadline deadline) {
    std::vector<Call> calls;
    for (const auto& slot : request.slots) {
      auto call = schedule_call("schedules_insert_slot", request.now, request.name);
      call.parameters.time(slot.at).uuid(ids_.next());
      calls.push_back(std::move(call));
    }
    EventIds ids;
    if (calls.empty()) return ids;
    const auto inserted = connection_.run(calls, deadline);
    if (!inserted) return inserted.error();
    for (const auto& rows : *inserted)
      ids.push_back(rows.empty() ? std::nullopt : std::optional(EventId(rows.uuid(0, 0))));
    return ids;
  }

  /// Of the slots that have an id.
  Result<void> write_events(const FireRequest& request, const EventIds& ids, Deadline deadline) {
    NewEventColumns columns;
    std::vector<Call> calls;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!ids[i]) continue;
      const auto& slot = request.slots[i];
      if (auto added = columns.add(slot.event, *ids[i]); !added) {
        return refuse(added.error(), deadline);
      }
      calls.push_back(ran_call(request.name, *ids[i], slot.at, request.now));
    }
    if (calls.empty()) return {};
    calls.push_back({"events_insert", columns.insert_parameters()});
    calls.push_back(trim_call(request.name));
    const auto written = connection_.run(calls, deadline);
    if (!written) return written.error();
    return {};
  }

  /// A change that changes nothing is no line in the audit.
  Result<bool> change(Call call, const ScheduleAuditLine& line, const Operator& who,
                      std::optional<Timestamp> now, Deadline deadline) {
    if (auto begun = connection_.begin(deadline); !begun) return begun.error();
    const auto changed = connection_.run(std::vector<Call>{std::move(call)}, deadline);
    if (!changed) return changed.error();
    const bool any = !changed->front().empty();
    if (any) {
      const auto written = connection_.run(std::vector<Call>{audit_call(line, who, now)}, deadline);
      if (!written) return written.error();
    }
    if (auto committed = connection_.commit(deadline); !committed) return committed.error();
    return any;
  }

  PostgresConnection connection_;
  std::unique_ptr<Random> random_;
  IdGenerator ids_{system_clock(), *random_};
};

}  // namespace
}  // namespace store::postgres

std::unique_ptr<ScheduleStore> make_postgres_schedule_store(PostgresOptions options) {
  return std::make_unique<store::postgres::PostgresScheduleStore>(std::move(options));
}

}  // namespace postrider
