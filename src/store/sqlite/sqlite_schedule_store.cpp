#include <utility>

#include <postrider/store/sqlite.hpp>

#include "base/timestamp_text.hpp"
#include "store/sqlite/sqlite_connection.hpp"
#include "store/sqlite/sqlite_rows.hpp"
#include "store/sqlite/sqlite_schema.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider {
namespace store::sqlite {
namespace {

namespace statements = sql::store_sqlite;

std::optional<Timestamp> time_if(const SqliteQuery& row, int column) {
  return row.is_null(column) ? std::nullopt : parse_timestamp(row.text(column));
}

ScheduleState read_schedule(const SqliteQuery& row) {
  ScheduleState state;
  state.name = row.text(0);
  state.cron = row.text(1);
  state.time_zone = row.text(2);
  state.type = row.text(3);
  state.missed = parse_missed(row.text(4)).value_or(state.missed);
  state.most_missed = static_cast<int>(row.integer(5));
  state.definition_hash = row.text(6);
  state.decided_until = time_if(row, 7).value_or(Timestamp());
  state.last_slot_at = time_if(row, 8);
  if (const auto id = Uuid::parse(row.text(9))) state.last_event_id = EventId(*id);
  state.paused_at = time_if(row, 10);
  state.paused_by = row.text(11);
  state.reason = row.text(12);
  state.created_at = time_if(row, 13).value_or(Timestamp());
  return state;
}

/// One line for the audit.
struct ScheduleAuditLine {
  const Operator& who;
  std::string_view action;
  const std::string& schedule;
  std::string detail = {};
};

class SqliteScheduleStore final : public ScheduleStore {
 public:
  explicit SqliteScheduleStore(const SqliteOptions& options)
      : connection_(without_create(options), Access::read_write), random_(system_random()) {}

  Result<void> check_schema(Deadline deadline) override {
    return connection_.read(deadline, [&] { return compare_schema(connection_); });
  }

  Result<void> register_all(const RegisterRequest& request, Deadline deadline) override {
    return write_at(request.now, deadline, [&](Timestamp now) -> Result<void> {
      for (const auto& schedule : request.schedules) {
        if (auto done = register_one(schedule, false, now); !done) return done;
      }
      return {};
    });
  }

  Result<ScheduleStates> states(std::optional<Timestamp> now, Deadline deadline) override {
    return connection_.read(deadline, [&]() -> Result<ScheduleStates> {
      const auto at = connection_.now(now);
      if (!at) return at.error();
      ScheduleStates states;
      states.now = *at;
      auto rows = connection_.query(statements::schedules_list);
      while (rows.next())
        states.schedules.push_back(read_schedule(rows));
      if (auto read = rows.result(); !read) return read.error();
      return states;
    });
  }

  Result<FireAnswer> fire(const FireRequest& request, Deadline deadline) override {
    return write_at(request.now, deadline, [&](Timestamp now) -> Result<FireAnswer> {
      const auto decided = decide(request);
      if (!decided) return decided.error();
      FireAnswer answer;
      if (!*decided) return answer;
      answer.fired = true;
      for (const auto& slot : request.slots) {
        const auto id = run_slot(request.name, slot, now);
        if (!id) return id.error();
        answer.event_ids.push_back(*id);
      }
      if (auto trimmed = trim(request.name); !trimmed) return trimmed.error();
      return answer;
    });
  }

  Result<EventId> run(const Schedule& schedule, const Operator& who, std::optional<Timestamp> now,
                      Deadline deadline) override {
    return write_at(now, deadline, [&](Timestamp at) -> Result<EventId> {
      if (auto done = register_one(schedule, true, at); !done) return done.error();
      const EventId id(ids_.next());
      if (auto done = write_event(event_of(schedule, at), id); !done) return done.error();
      if (auto done = note_run(schedule.name, at, id); !done) return done.error();
      const ScheduleAuditLine line{who, "schedule_run", schedule.name, id_text(id.value())};
      if (auto done = audit(line, at); !done) return done.error();
      return id;
    });
  }

  Result<bool> pause(const std::string& name, const Operator& who, std::optional<Timestamp> now,
                     Deadline deadline) override {
    return change(now, deadline, {who, "schedule_pause", name}, statements::schedules_pause,
                  [&](SqliteQuery& row, Timestamp at) {
                    row.bind(":now", timestamp_text(at));
                    row.bind(":paused_by", who.name).bind(":reason", who.reason);
                  });
  }

  Result<bool> resume(const std::string& name, const Operator& who, std::optional<Timestamp> now,
                      Deadline deadline) override {
    return change(now, deadline, {who, "schedule_resume", name}, statements::schedules_resume,
                  [](SqliteQuery& row, Timestamp at) { row.bind(":now", timestamp_text(at)); });
  }

  Result<bool> forget(const std::string& name, const Operator& who, std::optional<Timestamp> now,
                      Deadline deadline) override {
    return change(now, deadline, {who, "schedule_forget", name}, statements::schedules_forget,
                  [](SqliteQuery&, Timestamp) {});
  }

 private:
  template <class Body>
  std::invoke_result_t<Body, Timestamp> write_at(std::optional<Timestamp> given, Deadline deadline,
                                                 Body body) {
    return connection_.write(deadline, [&]() -> std::invoke_result_t<Body, Timestamp> {
      const auto now = connection_.now(given);
      if (!now) return now.error();
      return body(*now);
    });
  }

  Result<void> register_one(const Schedule& schedule, bool only_new, Timestamp now) {
    auto row = connection_.query(statements::schedules_register);
    row.bind(":name", schedule.name).bind(":cron", schedule.cron);
    row.bind(":time_zone", schedule.time_zone).bind(":type", schedule.type);
    row.bind(":missed", to_string(schedule.missed));
    row.bind(":most_missed", std::int64_t{schedule.most_missed});
    row.bind(":definition_hash", definition_hash(schedule));
    row.bind(":now", timestamp_text(now)).bind(":only_new", std::int64_t{only_new});
    return row.run();
  }

  Result<bool> decide(const FireRequest& request) {
    auto row = connection_.query(statements::schedules_decide);
    row.bind(":name", request.name).bind(":definition_hash", request.definition_hash);
    row.bind(":decided_until", timestamp_text(request.decided_until));
    row.bind(":decide_until", timestamp_text(request.decide_until));
    if (auto done = row.run(); !done) return done.error();
    return connection_.changes() == 1;
  }

  /// No id when the slot has run before.
  Result<std::optional<EventId>> run_slot(const std::string& name, const FireRequest::Slot& slot,
                                          Timestamp now) {
    const EventId id(ids_.next());
    {
      auto row = connection_.query(statements::schedules_insert_slot);
      row.bind(":name", name).bind(":slot_at", timestamp_text(slot.at));
      row.bind(":event_id", id_text(id.value())).bind(":now", timestamp_text(now));
      if (auto done = row.run(); !done) return done.error();
    }
    if (connection_.changes() == 0) return std::optional<EventId>();
    if (auto done = write_event(slot.event, id); !done) return done.error();
    if (auto done = note_run(name, slot.at, id); !done) return done.error();
    return std::optional(id);
  }

  Result<void> write_event(const NewEvent& event, const EventId& id) {
    auto row = connection_.query(statements::events_insert);
    if (auto bound = bind_event(row, event, id); !bound) return bound;
    return row.run();
  }

  Result<void> note_run(const std::string& name, Timestamp slot, const EventId& id) {
    auto row = connection_.query(statements::schedules_ran);
    row.bind(":name", name).bind(":slot_at", timestamp_text(slot));
    row.bind(":event_id", id_text(id.value()));
    return row.run();
  }

  Result<void> trim(const std::string& name) {
    auto row = connection_.query(statements::schedules_trim_slots);
    row.bind(":name", name).bind(":kept", static_cast<std::int64_t>(kept_slots));
    return row.run();
  }

  /// A change that changes nothing is no line in the audit.
  template <class Bind>
  Result<bool> change(std::optional<Timestamp> now, Deadline deadline,
                      const ScheduleAuditLine& line, std::string_view statement, Bind bind) {
    return write_at(now, deadline, [&](Timestamp at) -> Result<bool> {
      auto row = connection_.query(statement);
      row.bind(":name", line.schedule);
      bind(row, at);
      if (auto done = row.run(); !done) return done.error();
      if (connection_.changes() == 0) return false;
      if (auto done = audit(line, at); !done) return done.error();
      return true;
    });
  }

  Result<void> audit(const ScheduleAuditLine& line, Timestamp now) {
    auto row = connection_.query(statements::audit_insert);
    row.bind(":now", timestamp_text(now)).bind(":who", line.who.name);
    row.bind(":action", line.action).bind(":object", line.schedule);
    row.bind(":reason", line.who.reason).bind(":detail", line.detail);
    return row.run();
  }

  SqliteConnection connection_;
  std::unique_ptr<Random> random_;
  IdGenerator ids_{system_clock(), *random_};
};

}  // namespace
}  // namespace store::sqlite

std::unique_ptr<ScheduleStore> make_sqlite_schedule_store(SqliteOptions options) {
  return std::make_unique<store::sqlite::SqliteScheduleStore>(options);
}

}  // namespace postrider
