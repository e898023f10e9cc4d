#include "store/sqlite/sqlite_job_rows.hpp"

#include <algorithm>
#include <utility>

#include "base/timestamp_text.hpp"
#include "store/common/durations_codec.hpp"
#include "store/common/hooks_codec.hpp"
#include "store/sqlite/sqlite_rows.hpp"
#include "store_sqlite_sql.hpp"
#include "values/job_hooks.hpp"

namespace postrider::store::sqlite {
namespace {

/// Reads the columns of a job that are text with a meaning, and remembers the first fault.
class JobReader {
 public:
  explicit JobReader(const SqliteQuery& row) : row_(row) {}

  template <class Id>
  Id id(int column) {
    const auto uuid = Uuid::parse(row_.text(column));
    if (!uuid) return fault<Id>("one of its ids is not a UUID");
    return Id(*uuid);
  }

  [[nodiscard]] int number(int column) const { return static_cast<int>(row_.integer(column)); }

  [[nodiscard]] milliseconds duration(int column) const {
    return milliseconds(row_.integer(column));
  }

  std::vector<milliseconds> delays(int column) {
    auto delays = decode_durations(row_.text(column));
    if (!delays) return fault<std::vector<milliseconds>>("its retry_delays cannot be read");
    return std::move(delays).value();
  }

  JobHooks hooks(int column) {
    if (row_.is_null(column)) return {};
    auto hooks = decode_hooks(row_.text(column));
    return hooks ? std::move(hooks).value() : fault<JobHooks>("its hooks cannot be read");
  }

  OnWorkerDeath on_worker_death(int column) {
    const auto policy = parse_on_worker_death(row_.text(column));
    return policy ? *policy : fault<OnWorkerDeath>("its on_worker_death is unknown");
  }

  Timestamp time(int column) {
    const auto time = parse_timestamp(row_.text(column));
    return time ? *time : fault<Timestamp>("its delivery_timeout_at cannot be read");
  }

  std::string take_fault() { return std::move(fault_); }

 private:
  template <class T>
  T fault(std::string_view what) {
    if (fault_.empty())
      fault_ = "the job's row is damaged: " + std::string(what) + ". Repair the row.";
    return T{};
  }

  const SqliteQuery& row_;
  std::string fault_;
};

}  // namespace

DispatchedJob read_dispatched_job(const SqliteQuery& row) {
  JobReader reader(row);
  DispatchedJob read;
  read.job.delivery_id = reader.id<DeliveryId>(0);
  read.job.event_seq = Seq(row.integer(1));
  // Not read strictly: a malformed event hands its job the id that it has.
  if (const auto event_id = Uuid::parse(row.text(2))) read.job.event_id = EventId(*event_id);
  read.job.route = row.text(3);
  read.job.job = row.text(4);
  read.job.queue = row.text(5);
  read.job.attempts = reader.number(6);
  read.job.retry_delays = reader.delays(7);
  read.job.timeout = reader.duration(8);
  read.job.timeout_limit = reader.duration(9);
  read.job.on_worker_death = reader.on_worker_death(10);
  read.job.max_deaths = reader.number(11);
  // The row counts this dispatch already; nobody writes a dispatched row without that.
  read.job.deaths = std::max(reader.number(12) - 1, 0);
  read.job.snoozes = reader.number(13);
  read.job.interruptions = reader.number(14);
  read.job.cancel_requested = !row.is_null(15);
  read.dispatch_id = reader.id<DispatchId>(16);
  read.delivery_timeout_at = reader.time(17);
  if (!row.is_null(18)) read.worker = reader.id<WorkerId>(18);
  read.checkpoint = row.text(19);
  read.hooks = reader.hooks(20);
  read.malformed = reader.take_fault();
  return read;
}

Result<Task> TaskReader::read(DispatchedJob dispatched) {
  auto event = event_of(dispatched.job.event_seq);
  if (!event) return event.error();
  dispatched.job.hooks = hook_context(std::move(dispatched.hooks), *event->event);
  Task task;
  task.until_timeout = until(dispatched.delivery_timeout_at, now_);
  task.job = std::move(dispatched.job);
  task.dispatch_id = dispatched.dispatch_id;
  task.event = event->event;
  task.checkpoint = std::move(dispatched.checkpoint);
  task.malformed =
      dispatched.malformed.empty() ? event->malformed : std::move(dispatched.malformed);
  return task;
}

Result<void> TaskReader::set_hooks(DispatchedJob& dispatched) {
  if (dispatched.hooks.empty()) return {};
  const auto event = event_of(dispatched.job.event_seq);
  if (!event) return event.error();
  dispatched.job.hooks = hook_context(std::move(dispatched.hooks), *event->event);
  return {};
}

Result<ReadEvent> TaskReader::event_of(Seq seq) {
  auto& known = events_[seq];
  if (known.event) return known;
  auto row = connection_.query(sql::store_sqlite::events_get);
  row.bind(":seq", seq.value());
  if (row.next()) return known = read_event_columns(row);
  if (auto read = row.result(); !read) return read.error();
  // The foreign key keeps it there.
  return Error{ErrorCode::storage_failed, Disposition::stop,
               "the event of a job is not there. Run PRAGMA foreign_key_check and integrity_check, "
               "and restore the file if they complain.",
               "sqlite", ""};
}

}  // namespace postrider::store::sqlite
