#include "store/sqlite/sqlite_job_taking.hpp"

#include <algorithm>
#include <utility>

#include "base/timestamp_text.hpp"
#include "store/sqlite/sqlite_due_jobs.hpp"
#include "store/sqlite/sqlite_job_rows.hpp"
#include "store/sqlite/sqlite_rows.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider::store::sqlite {
namespace {

namespace statements = sql::store_sqlite;

/// Rows of a broker's route that are passed over because their queue is paused or has no tokens
/// left. A route has one queue unless its configuration was changed, and then a walk over all rows
/// of the other one would cost more than it finds.
constexpr std::size_t most_passed_over = 1000;

class JobTaking {
 public:
  /// `worker` is empty for a broker.
  JobTaking(SqliteConnection& connection, std::optional<WorkerId> worker, std::size_t limit,
            IdGenerator& ids, Timestamp now)
      : connection_(connection),
        worker_(worker),
        limit_(std::max<std::size_t>(limit, 1)),
        ids_(ids),
        now_(now),
        now_text_(timestamp_text(now)),
        serial_keys_(connection),
        rules_(connection, now),
        tasks_(connection, now) {}

  Result<TaskBatch> take(const TakeRequest& request) {
    for (const auto& share : request.queues) {
      if (is_full()) break;
      const auto paused = rules_.is_paused(share.queue);
      if (!paused) return paused.error();
      if (*paused) continue;
      const auto wanted = std::min(share.at_most, limit_ - batch_.tasks.size());
      DueQueue jobs(connection_, share.queue, request.ageing, now_, wanted);
      if (auto taken = take_from(jobs, wanted, 0); !taken) return taken.error();
    }
    return finish();
  }

  Result<TaskBatch> hand_out(const HandOutRequest& request) {
    for (const auto& route : request.routes) {
      if (is_full()) break;
      const auto wanted = limit_ - batch_.tasks.size();
      DueRange::Place place{statements::jobs_due_by_route, statements::jobs_next_due_by_route, "",
                            0, route};
      DueRange jobs(connection_, std::move(place), now_text_, wanted);
      if (auto taken = take_from(jobs, wanted, most_passed_over); !taken) return taken.error();
    }
    return finish();
  }

 private:
  /// And known to have left something.
  [[nodiscard]] bool is_full() const { return batch_.more && batch_.tasks.size() == limit_; }

  enum class Verdict : std::uint8_t {
    dispatched,
    waits,    ///< behind others of its serial key
    held,     ///< by its queue, as are all others of it
    too_many  ///< could run, and does not fit
  };

  template <class DueJobs>
  Result<void> take_from(DueJobs& jobs, std::size_t wanted, std::size_t may_pass_over) {
    std::size_t passed_over = 0;
    for (std::size_t taken = 0;; jobs.pop()) {
      const auto job = jobs.front();
      if (!job) return job.error();
      if (*job == nullptr) return note_next_due(jobs);
      const auto verdict = consider(**job, taken == wanted);
      if (!verdict) return verdict.error();
      if (*verdict == Verdict::too_many) return {};
      if (*verdict == Verdict::held && passed_over++ == may_pass_over) return {};
      if (*verdict == Verdict::dispatched) ++taken;
    }
  }

  Result<Verdict> consider(const DueJob& job, bool full) {
    const auto paused = rules_.is_paused(job.queue);
    if (!paused) return paused.error();
    if (*paused) return Verdict::held;

    std::optional<std::int64_t> slot;
    if (job.serial_key) {
      auto free = serial_keys_.free_slot(job);
      if (!free) return free.error();
      if (!*free) return Verdict::waits;
      slot = *free;
    }
    if (full) {
      batch_.more = true;
      return Verdict::too_many;
    }
    const auto admitted = rules_.admit(job.queue);
    if (!admitted) return admitted.error();
    if (!*admitted) {
      note_wait(rules_.next_token_in(job.queue));
      return Verdict::held;
    }
    if (auto done = dispatch(job, slot); !done) return done.error();
    return Verdict::dispatched;
  }

  Result<void> dispatch(const DueJob& job, std::optional<std::int64_t> serial_slot) {
    auto row = connection_.query(statements::jobs_dispatch);
    row.bind(":id", job.id).bind(":dispatch_id", id_text(ids_.next())).bind(":now", now_text_);
    row.bind(":delivery_timeout_at", timestamp_text(now_ + job.timeout));
    if (worker_) row.bind(":worker", id_text(worker_->value()));
    if (serial_slot) row.bind(":serial_slot", *serial_slot);
    if (!row.next()) return missing(row);
    auto dispatched = read_dispatched_job(row);
    if (auto rest = row.run(); !rest) return rest;
    if (serial_slot) serial_keys_.occupy(job, *serial_slot);
    auto task = tasks_.read(std::move(dispatched));
    if (!task) return task.error();
    batch_.tasks.push_back(std::move(task).value());
    return {};
  }

  static Error missing(const SqliteQuery& row) {
    if (auto read = row.result(); !read) return read.error();
    return {ErrorCode::storage_failed, Disposition::stop,
            "a job that an index shows as pending is not. Run PRAGMA integrity_check and restore "
            "the file if it complains.",
            "sqlite", ""};
  }

  template <class DueJobs>
  Result<void> note_next_due(DueJobs& jobs) {
    const auto next_due = jobs.next_due();
    if (!next_due) return next_due.error();
    if (!*next_due) return {};
    if (const auto at = parse_timestamp(**next_due)) note_wait(until(*at, now_));
    return {};
  }

  void note_wait(milliseconds wait) {
    batch_.next_in = std::min(batch_.next_in.value_or(wait), wait);
  }

  Result<TaskBatch> finish() {
    if (auto stored = rules_.store(); !stored) return stored.error();
    // What did not fit is due already.
    if (batch_.more) batch_.next_in = milliseconds::zero();
    return std::move(batch_);
  }

  SqliteConnection& connection_;
  std::optional<WorkerId> worker_;
  std::size_t limit_;
  IdGenerator& ids_;
  Timestamp now_;
  std::string now_text_;
  SerialKeys serial_keys_;
  QueueRules rules_;
  TaskReader tasks_;
  TaskBatch batch_;
};

}  // namespace

Result<TaskBatch> take_jobs(SqliteConnection& connection, const TakeRequest& request,
                            IdGenerator& ids, Timestamp now) {
  return JobTaking(connection, request.worker, request.limit, ids, now).take(request);
}

Result<TaskBatch> hand_out_jobs(SqliteConnection& connection, const HandOutRequest& request,
                                IdGenerator& ids, Timestamp now) {
  return JobTaking(connection, std::nullopt, request.limit, ids, now).hand_out(request);
}

Result<StartAnswer> start_job(SqliteConnection& connection, const StartRequest& request,
                              Timestamp now) {
  using Kind = StartAnswer::Kind;
  const auto bind_dispatch = [&](SqliteQuery& row) {
    row.bind(":id", id_text(request.delivery_id.value()));
    row.bind(":dispatch_id", id_text(request.dispatch_id.value()));
  };
  std::optional<DispatchedJob> dispatched;
  {
    auto row = connection.query(statements::jobs_get_dispatched);
    bind_dispatch(row);
    if (row.next()) dispatched = read_dispatched_job(row);
    if (auto read = row.result(); !read) return read.error();
  }
  if (!dispatched) return StartAnswer{Kind::stale, std::nullopt};
  if (dispatched->job.job != request.job) return StartAnswer{Kind::wrong_job, std::nullopt};
  const bool is_ours = request.again && dispatched->worker == request.worker;
  if (dispatched->worker && !is_ours) return StartAnswer{Kind::taken, std::nullopt};

  if (!is_ours) {
    auto row = connection.query(statements::jobs_start);
    bind_dispatch(row);
    row.bind(":worker", id_text(request.worker.value()));
    if (auto done = row.run(); !done) return done.error();
  }
  auto task = TaskReader(connection, now).read(std::move(*dispatched));
  if (!task) return task.error();
  return StartAnswer{Kind::started, std::move(task).value()};
}

}  // namespace postrider::store::sqlite
