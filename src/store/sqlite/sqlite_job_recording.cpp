#include "store/sqlite/sqlite_job_recording.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.hpp"
#include "base/timestamp_text.hpp"
#include "store/sqlite/sqlite_job_rows.hpp"
#include "store/sqlite/sqlite_rows.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider::store::sqlite {
namespace {

namespace statements = sql::store_sqlite;

/// Longer than any limit of a route, and short enough for arithmetic in microseconds.
constexpr milliseconds most_extension = std::chrono::hours(24 * 365);

template <class Update>
void bind_attempt(SqliteQuery& row, const Update& update) {
  row.bind(":id", id_text(update.delivery_id.value()));
  row.bind(":dispatch_id", id_text(update.dispatch_id.value()));
}

/// Why a row could not be recorded.
Result<RecordAnswer> answer_late(SqliteConnection& connection, const JobUpdate& update) {
  auto row = connection.query(statements::jobs_recorded);
  row.bind(":id", id_text(update.delivery_id.value()));
  if (!row.next()) {
    if (auto read = row.result(); !read) return read.error();
    return RecordAnswer::stale;
  }
  const bool same_dispatch = row.text(0) == id_text(update.dispatch_id.value());
  if (!same_dispatch) return RecordAnswer::stale;
  const bool running = row.integer(2) != 0;
  const bool waits = update.status == DeliveryStatus::pending;
  if (running && waits && row.integer(3) != 0) return RecordAnswer::cancel_requested;
  if (running || row.is_null(1)) return RecordAnswer::stale;
  return row.text(1) == update.result ? RecordAnswer::repeated : RecordAnswer::conflict;
}

/// The deadline after an extension, which never shortens.
Timestamp extended(milliseconds extend, Timestamp deadline, Timestamp latest, Timestamp now) {
  // Compared as durations: far more than the limit must not run over.
  const auto left = std::max(latest - now, Timestamp::duration::zero());
  return std::max(deadline,
                  now + std::min<Timestamp::duration>(std::min(extend, most_extension), left));
}

Result<void> keep_failure(SqliteConnection& connection, const JobUpdate& update, Timestamp now) {
  auto row = connection.query(statements::jobs_keep_failures);
  row.bind(":delivery_id", id_text(update.delivery_id.value()))
      .bind(":dispatch_id", id_text(update.dispatch_id.value()))
      .bind(":attempt", std::int64_t{update.attempts})
      .bind(":now", timestamp_text(now))
      .bind(":code", update.failure_code)
      .bind(":detail", update.failure_detail);
  if (update.worker) row.bind(":worker", id_text(update.worker->value()));
  if (auto done = row.run(); !done) return done;
  const auto dropped = update.attempts - JobFailure::most_kept;
  if (dropped < 1) return {};
  auto old = connection.query(statements::jobs_drop_failures);
  old.bind(":delivery_id", id_text(update.delivery_id.value()));
  old.bind(":attempt", std::int64_t{dropped});
  return old.run();
}

/// What an end that was applied brings along.
Result<void> write_more(SqliteConnection& connection, const JobUpdate& update, IdGenerator& ids,
                        Timestamp now) {
  if (update.keeps_failure) {
    if (auto kept = keep_failure(connection, update, now); !kept) return kept;
  }
  for (const auto& event : update.events) {
    auto row = connection.query(statements::events_insert);
    const auto id = event.id ? *event.id : EventId(ids.next());
    if (auto bound = bind_event(row, event, id); !bound) return bound;
    if (auto done = row.run(); !done) return done;
  }
  return {};
}

class LostReader {
 public:
  LostReader(SqliteConnection& connection, std::size_t limit, Timestamp now)
      : connection_(connection),
        events_(connection),
        limit_(std::max<std::size_t>(limit, 1)),
        now_(now) {}

  Result<LostBatch> read() {
    if (auto done = read_of_dead_workers(); !done) return done.error();
    if (auto done = read_overdue(); !done) return done.error();
    batch_.more = batch_.attempts.size() > limit_;
    if (batch_.more) batch_.attempts.resize(limit_);
    return std::move(batch_);
  }

 private:
  [[nodiscard]] bool is_full() const { return batch_.attempts.size() > limit_; }
  /// With one beyond the limit, which tells that there are more.
  [[nodiscard]] std::int64_t page() const { return static_cast<std::int64_t>(limit_) + 1; }

  /// Goes from worker to worker and not from row to row, so that those of the living cost nothing.
  Result<void> read_of_dead_workers() {
    std::string worker;
    while (!is_full()) {
      auto next = connection_.query(statements::jobs_next_worker);
      next.bind(":after", worker);
      if (!next.next() || next.is_null(0)) return next.result();
      worker = next.text(0);
      const auto gone = is_gone(worker);
      if (!gone) return gone.error();
      if (!*gone) continue;
      if (auto done = read_of(worker); !done) return done;
    }
    return {};
  }

  /// Dead, or so long forgotten that its row is not there any more. One that has signed off with an
  /// attempt that it could not record may still have written that elsewhere: the deadline tells.
  Result<bool> is_gone(const std::string& worker) {
    auto row = connection_.query(statements::workers_state);
    row.bind(":id", worker);
    const bool gone = !row.next() || row.text(0) == "dead";
    if (auto read = row.result(); !read) return read.error();
    return gone;
  }

  Result<void> read_of(const std::string& worker) {
    auto rows = connection_.query(statements::jobs_of_worker);
    rows.bind(":worker", worker).bind(":limit", page());
    return add_all(rows, true);
  }

  Result<void> read_overdue() {
    if (is_full()) return {};
    auto rows = connection_.query(statements::jobs_overdue);
    rows.bind(":now", timestamp_text(now_)).bind(":limit", page());
    return add_all(rows, false);
  }

  Result<void> add_all(SqliteQuery& rows, bool worker_died) {
    while (rows.next()) {
      auto dispatched = read_dispatched_job(rows);
      if (auto done = events_.set_hooks(dispatched); !done) return done;
      add(std::move(dispatched), worker_died);
    }
    return rows.result();
  }

  void add(DispatchedJob dispatched, bool worker_died) {
    if (!found_.insert(dispatched.job.delivery_id).second) return;
    batch_.attempts.push_back(
        {std::move(dispatched.job), dispatched.dispatch_id, worker_died, dispatched.worker});
  }

  SqliteConnection& connection_;
  TaskReader events_;
  std::size_t limit_;
  Timestamp now_;
  std::set<DeliveryId> found_;
  LostBatch batch_;
};

}  // namespace

Result<RecordAnswer> record_end(SqliteConnection& connection, const JobUpdate& update,
                                IdGenerator& ids, Timestamp now) {
  POSTRIDER_ASSERT(update.status != DeliveryStatus::dispatched &&
                   update.status != DeliveryStatus::held);
  const bool pending = update.status == DeliveryStatus::pending;
  auto row = connection.query(statements::jobs_record);
  bind_attempt(row, update);
  row.bind(":status", to_string(update.status))
      .bind(":attempts", std::int64_t{update.attempts})
      .bind(":deaths", std::int64_t{update.deaths})
      .bind(":snoozes", std::int64_t{update.snoozes})
      .bind(":interruptions", std::int64_t{update.interruptions})
      .bind(":failure_code", update.failure_code)
      .bind(":failure_detail", update.failure_detail)
      .bind(":result", update.result)
      .bind(":unless_started", std::int64_t{update.unless_started ? 1 : 0});
  if (pending) {
    row.bind(":available_at", timestamp_text(now + update.available_in));
  } else {
    row.bind(":finished_at", timestamp_text(now));
  }
  if (auto done = row.run(); !done) return done.error();
  if (connection.changes() == 0) return answer_late(connection, update);
  if (auto done = write_more(connection, update, ids, now); !done) return done.error();
  return RecordAnswer::recorded;
}

bool writes(const AttemptUpdate& update) noexcept {
  return update.extend || update.percent || update.note || update.checkpoint;
}

Result<AttemptState> touch_attempt(SqliteConnection& connection, const AttemptUpdate& update,
                                   Timestamp now) {
  AttemptState state;
  std::optional<Timestamp> deadline;
  {
    auto row = connection.query(statements::jobs_attempt);
    bind_attempt(row, update);
    if (!row.next()) {
      if (auto read = row.result(); !read) return read.error();
      return state;
    }
    const auto since = parse_timestamp(row.text(0)).value_or(now);
    const auto stored = parse_timestamp(row.text(1)).value_or(now);
    const auto latest = since + milliseconds(row.integer(2));
    if (update.extend) deadline = extended(*update.extend, stored, latest, now);
    state.current = true;
    state.cancel_requested = !row.is_null(3);
    state.until_timeout = until(deadline.value_or(stored), now);
  }
  if (!writes(update)) return state;

  auto row = connection.query(statements::jobs_touch);
  bind_attempt(row, update);
  row.bind_if(":delivery_timeout_at", time_text(deadline)).bind_if(":note", update.note);
  if (update.percent) row.bind(":percent", std::int64_t{*update.percent});
  if (update.checkpoint) row.bind_borrowed_bytes(":checkpoint", *update.checkpoint);
  if (auto done = row.run(); !done) return done.error();
  return state;
}

Result<LostBatch> find_lost(SqliteConnection& connection, std::size_t limit, Timestamp now) {
  return LostReader(connection, limit, now).read();
}

}  // namespace postrider::store::sqlite
