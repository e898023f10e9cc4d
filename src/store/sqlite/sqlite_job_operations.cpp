#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <postrider/store/sqlite.hpp>

#include "base/timestamp_text.hpp"
#include "store/common/durations_codec.hpp"
#include "store/common/hooks_codec.hpp"
#include "store/common/strings_codec.hpp"
#include "store/sqlite/sqlite_connection.hpp"
#include "store/sqlite/sqlite_rows.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider {
namespace store::sqlite {
namespace {

namespace statements = sql::store_sqlite;

std::optional<Timestamp> time_in(const SqliteQuery& row, int column) {
  return row.is_null(column) ? std::nullopt : parse_timestamp(row.text(column));
}

std::optional<milliseconds> age_since(const SqliteQuery& row, int column, Timestamp now) {
  const auto since = time_in(row, column);
  if (!since) return std::nullopt;
  return std::max(std::chrono::duration_cast<milliseconds>(now - *since), milliseconds::zero());
}

int number(const SqliteQuery& row, int column) {
  return static_cast<int>(row.integer(column));
}

template <class Id>
std::optional<Id> id_in(const SqliteQuery& row, int column) {
  const auto uuid = Uuid::parse(row.text(column));
  if (!uuid) return std::nullopt;
  return Id(*uuid);
}

std::optional<std::string> if_not_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

JobCounts read_job_counts(const SqliteQuery& row, Timestamp now) {
  JobCounts counts;
  counts.queue = row.text(0);
  counts.job = row.text(1);
  counts.due = row.integer(2);
  counts.delayed = row.integer(3);
  counts.dispatched = row.integer(4);
  counts.overdue = row.integer(5);
  counts.completed = row.integer(6);
  counts.failed = row.integer(7);
  counts.discarded = row.integer(8);
  counts.cancelled = row.integer(9);
  counts.retries = row.integer(10);
  counts.deaths = row.integer(11);
  counts.snoozes = row.integer(12);
  counts.interruptions = row.integer(13);
  counts.oldest_due_age = age_since(row, 14, now);
  counts.oldest_dispatched_age = age_since(row, 15, now);
  return counts;
}

QueueState read_queue_state(const SqliteQuery& row) {
  QueueState state;
  state.queue = row.text(0);
  state.paused_at = time_in(row, 1);
  state.paused_by = row.text(2);
  state.reason = row.text(3);
  if (!row.is_null(4)) state.rate_limit = RateLimit{number(row, 4), milliseconds(row.integer(5))};
  return state;
}

/// The columns of jobs_list and jobs_show.
JobDetail read_job_detail(const SqliteQuery& row) {
  JobDetail job;
  job.delivery = read_delivery_columns(row).delivery;
  int column = delivery_columns;
  job.job = row.text(column++);
  job.queue = row.text(column++);
  job.transport = parse_job_transport(row.text(column++)).value_or(job.transport);
  job.priority = number(row, column++);
  job.serial_key = row.optional_text(column++);
  job.serial_limit = number(row, column++);
  job.unique_key = row.optional_text(column++);
  job.on_worker_death = parse_on_worker_death(row.text(column++)).value_or(job.on_worker_death);
  job.max_deaths = number(row, column++);
  job.timeout_limit = milliseconds(row.integer(column++));
  job.deaths = number(row, column++);
  job.snoozes = number(row, column++);
  job.interruptions = number(row, column++);
  job.worker = id_in<WorkerId>(row, column++);
  job.worker_name = row.text(column++);
  job.worker_host = row.text(column++);
  job.cancel_requested_at = time_in(row, column++);
  if (!row.is_null(column)) job.percent = number(row, column);
  ++column;
  job.note = row.text(column++);
  job.checkpoint_bytes = row.optional_integer(column++).value_or(0);
  job.event_type = row.text(column++);
  if (!row.is_null(column)) job.aggregate = Aggregate{row.text(column), row.text(column + 1)};
  column += 2;
  if (!row.is_null(column)) {
    if (auto hooks = decode_hooks(row.text(column))) job.hooks = std::move(hooks).value();
  }
  return job;
}

JobFailure read_failure(const SqliteQuery& row) {
  JobFailure failure;
  failure.dispatch_id = id_in<DispatchId>(row, 0).value_or(DispatchId());
  failure.attempt = number(row, 1);
  failure.failed_at = time_in(row, 2).value_or(Timestamp());
  failure.code = row.text(3);
  failure.detail = row.text(4);
  failure.worker = id_in<WorkerId>(row, 5);
  return failure;
}

ListedWorker read_listed_worker(const SqliteQuery& row, Timestamp now) {
  ListedWorker worker;
  worker.info.id = id_in<WorkerId>(row, 0).value_or(WorkerId());
  worker.info.name = row.text(1);
  worker.info.host = row.text(2);
  worker.info.pid = row.integer(3);
  worker.info.version = row.text(4);
  if (auto queues = decode_strings(row.text(5))) worker.info.queues = std::move(queues).value();
  worker.info.state = parse_worker_state(row.text(6)).value_or(WorkerState::dead);
  worker.started_at = time_in(row, 7).value_or(Timestamp());
  worker.last_seen_age = age_since(row, 8, now).value_or(milliseconds::zero());
  worker.running = row.integer(9);
  return worker;
}

std::string due_text(const DueTime& due, Timestamp now) {
  return timestamp_text(due.at.value_or(now + due.in));
}

/// One line for the audit.
struct JobAuditLine {
  const Operator& who;
  std::string_view action;
  std::string object;
  std::string detail = {};
};

class SqliteJobOperations final : public JobOperations {
 public:
  explicit SqliteJobOperations(const SqliteOptions& options)
      : reader_(without_create(options), Access::read_only),
        writer_(without_create(options), Access::read_write),
        random_(system_random()) {}

  Result<JobStatus> status(std::optional<Timestamp> now, Deadline deadline) override {
    return reader_.read(deadline, [&]() -> Result<JobStatus> {
      const auto at = reader_.now(now);
      if (!at) return at.error();
      JobStatus status;
      if (auto counted = count_jobs(*at, status); !counted) return counted.error();
      auto rows = reader_.query(statements::queues_list);
      while (rows.next())
        status.queues.push_back(read_queue_state(rows));
      if (auto read = rows.result(); !read) return read.error();
      return status;
    });
  }

  Result<JobPage> jobs(const JobFilter& filter, Deadline deadline) override {
    if (auto checked = check(filter); !checked) return checked.error();
    return reader_.read(deadline, [&]() -> Result<JobPage> {
      const auto last = bound_of(filter);
      if (!last) return last.error();
      return list(filter, *last);
    });
  }

  Result<std::optional<JobDetail>> job(const DeliveryId& id, Deadline deadline) override {
    return reader_.read(deadline, [&]() -> Result<std::optional<JobDetail>> {
      auto row = reader_.query(statements::jobs_show);
      row.bind(":id", id_text(id.value()));
      std::optional<JobDetail> found;
      if (row.next()) found = read_job_detail(row);
      if (auto read = row.result(); !read) return read.error();
      if (!found) return found;
      auto failures = reader_.query(statements::jobs_failures);
      failures.bind(":id", id_text(id.value()));
      while (failures.next())
        found->failures.push_back(read_failure(failures));
      if (auto read = failures.result(); !read) return read.error();
      return found;
    });
  }

  Result<std::vector<ListedWorker>> workers(bool ended, std::optional<Timestamp> now,
                                            Deadline deadline) override {
    return reader_.read(deadline, [&]() -> Result<std::vector<ListedWorker>> {
      const auto at = reader_.now(now);
      if (!at) return at.error();
      auto rows = reader_.query(statements::workers_list);
      rows.bind(":ended", std::int64_t{ended});
      rows.bind(":limit", static_cast<std::int64_t>(most_workers));
      std::vector<ListedWorker> workers;
      while (rows.next())
        workers.push_back(read_listed_worker(rows, *at));
      if (auto read = rows.result(); !read) return read.error();
      return workers;
    });
  }

  Result<EnqueueAnswer> enqueue(const EnqueueRequest& request, const Operator& who,
                                std::optional<Timestamp> now, Deadline deadline) override {
    if (auto checked = check(request); !checked) return checked.error();
    // Nobody else writes from here on, so a key that is free stays free.
    return writer_.write(deadline, [&]() -> Result<EnqueueAnswer> {
      const auto at = writer_.now(now);
      if (!at) return at.error();
      const auto earlier = find_unique(request.policy);
      if (!earlier) return earlier.error();
      if (*earlier) return **earlier;
      const EnqueueAnswer made{DeliveryId(ids_.next()),
                               request.event.id ? *request.event.id : EventId(ids_.next()), true};
      if (auto done = write_event(request.event, made, *at); !done) return done.error();
      if (auto done = write_delivery(request, made, *at); !done) return done.error();
      const auto& policy = request.policy;
      const JobAuditLine line{who, "job_enqueue", id_text(made.delivery_id.value()),
                              policy.queue + " " + policy.job};
      if (auto done = audit(line, *at); !done) return done.error();
      return made;
    });
  }

  Result<JobAnswer> cancel(const DeliveryId& id, const Operator& who, std::optional<Timestamp> now,
                           Deadline deadline) override {
    auto answer = change_job(
        id, now, deadline, {who, "job_cancel", id_text(id.value())}, statements::jobs_cancel,
        [](SqliteQuery& row, Timestamp at) { row.bind(":now", timestamp_text(at)); });
    // Still dispatched: its worker is asked now, or was before.
    if (answer && answer->status == DeliveryStatus::dispatched) {
      answer->kind = JobAnswer::Kind::requested;
    }
    return answer;
  }

  Result<JobAnswer> reschedule(const DeliveryId& id, const DueTime& due, const Operator& who,
                               std::optional<Timestamp> now, Deadline deadline) override {
    if (auto checked = check(due); !checked) return checked.error();
    return change_job(id, now, deadline, {who, "job_reschedule", id_text(id.value())},
                      statements::jobs_reschedule, [&](SqliteQuery& row, Timestamp at) {
                        row.bind(":available_at", due_text(due, at));
                      });
  }

  Result<bool> queue_pause(const std::string& queue, const Operator& who,
                           std::optional<Timestamp> now, Deadline deadline) override {
    return change_queue(now, deadline, {who, "queue_pause", queue}, statements::queues_pause,
                        [&](SqliteQuery& row, Timestamp at) {
                          row.bind(":now", timestamp_text(at));
                          row.bind(":paused_by", who.name).bind(":reason", who.reason);
                        });
  }

  Result<bool> queue_resume(const std::string& queue, const Operator& who,
                            std::optional<Timestamp> now, Deadline deadline) override {
    return change_queue(now, deadline, {who, "queue_resume", queue}, statements::queues_resume,
                        [](SqliteQuery&, Timestamp) {});
  }

  Result<bool> queue_limit(const std::string& queue, const std::optional<RateLimit>& rate_limit,
                           const Operator& who, std::optional<Timestamp> now,
                           Deadline deadline) override {
    if (!rate_limit) {
      return change_queue(now, deadline, {who, "queue_limit", queue, "none"},
                          statements::queues_unlimit, [](SqliteQuery&, Timestamp) {});
    }
    if (auto checked = check(*rate_limit); !checked) return checked.error();
    const auto detail = fmt::format("{} in {} ms", rate_limit->limit, rate_limit->period.count());
    return change_queue(now, deadline, {who, "queue_limit", queue, detail},
                        statements::queues_limit, [&](SqliteQuery& row, Timestamp at) {
                          row.bind(":now", timestamp_text(at));
                          row.bind(":rate_limit", std::int64_t{rate_limit->limit});
                          row.bind(":rate_period_ms", std::int64_t{rate_limit->period.count()});
                        });
  }

 private:
  Result<void> count_jobs(Timestamp now, JobStatus& status) {
    auto rows = reader_.query(statements::jobs_count);
    rows.bind(":now", timestamp_text(now));
    while (rows.next())
      status.jobs.push_back(read_job_counts(rows, now));
    return rows.result();
  }

  Result<std::optional<DeliveryId>> bound_of(const JobFilter& filter) {
    auto row = reader_.query(statements::jobs_bound);
    if (filter.after) row.bind(":after", id_text(filter.after->value()));
    row.bind(":examine", static_cast<std::int64_t>(filter.examine) - 1);
    std::optional<DeliveryId> bound;
    if (row.next()) bound = id_in<DeliveryId>(row, 0);
    if (auto read = row.result(); !read) return read.error();
    return bound;
  }

  Result<JobPage> list(const JobFilter& filter, const std::optional<DeliveryId>& last) {
    auto rows = reader_.query(statements::jobs_list);
    if (filter.after) rows.bind(":after", id_text(filter.after->value()));
    if (last) rows.bind(":last", id_text(last->value()));
    rows.bind_if(":queue", filter.queue).bind_if(":job", filter.job);
    if (filter.status) rows.bind(":status", to_string(*filter.status));
    rows.bind(":limit", static_cast<std::int64_t>(filter.limit) + 1);
    JobPage page;
    page.next = last;
    while (rows.next()) {
      if (page.jobs.size() == filter.limit) {
        page.next = page.jobs.back().delivery.id;
        break;
      }
      page.jobs.push_back(read_job_detail(rows));
    }
    if (auto read = rows.result(); !read) return read.error();
    return page;
  }

  /// The open job with this unique key.
  Result<std::optional<EnqueueAnswer>> find_unique(const JobPolicy& policy) {
    std::optional<EnqueueAnswer> found;
    if (policy.unique_key.empty()) return found;
    auto row = writer_.query(statements::jobs_find_unique);
    row.bind(":job", policy.job).bind(":unique_key", policy.unique_key);
    if (row.next()) {
      found = EnqueueAnswer{id_in<DeliveryId>(row, 0).value_or(DeliveryId()),
                            id_in<EventId>(row, 1).value_or(EventId()), false};
    }
    if (auto read = row.result(); !read) return read.error();
    return found;
  }

  /// As an event that is routed already.
  Result<void> write_event(const NewEvent& event, const EnqueueAnswer& made, Timestamp now) {
    auto row = writer_.query(statements::events_insert);
    if (auto bound = bind_event(row, event, made.event_id); !bound) return bound;
    if (auto written = row.run(); !written) return written;
    auto mark = writer_.query(statements::jobs_enqueue_event);
    mark.bind(":event_id", id_text(made.event_id.value())).bind(":now", timestamp_text(now));
    return mark.run();
  }

  Result<void> write_delivery(const EnqueueRequest& request, const EnqueueAnswer& made,
                              Timestamp now) {
    const auto& policy = request.policy;
    auto row = writer_.query(statements::jobs_enqueue);
    row.bind(":id", id_text(made.delivery_id.value()));
    row.bind(":event_id", id_text(made.event_id.value()));
    row.bind(":retry_delays", encode_durations(request.retry_delays));
    row.bind(":timeout_ms", std::int64_t{request.timeout.count()});
    row.bind(":available_at", due_text(request.due, now));
    row.bind(":job", policy.job).bind(":queue", policy.queue);
    row.bind(":priority", std::int64_t{policy.priority});
    row.bind_if(":serial_key", if_not_empty(policy.serial_key));
    if (!policy.serial_key.empty()) row.bind(":serial_limit", std::int64_t{policy.serial_limit});
    row.bind_if(":unique_key", if_not_empty(policy.unique_key));
    row.bind(":on_worker_death", to_string(policy.on_worker_death));
    row.bind(":max_deaths", std::int64_t{policy.max_deaths});
    row.bind(":timeout_limit_ms", std::int64_t{policy.timeout_limit.count()});
    row.bind_if(":hooks", encode_hooks(policy.hooks));
    return row.run();
  }

  /// `statement` returns the status that it leaves, and no row where it changes nothing.
  template <class Bind>
  Result<JobAnswer> change_job(const DeliveryId& id, std::optional<Timestamp> now,
                               Deadline deadline, const JobAuditLine& line,
                               std::string_view statement, Bind bind) {
    return writer_.write(deadline, [&]() -> Result<JobAnswer> {
      const auto at = writer_.now(now);
      if (!at) return at.error();
      const auto changed = status_of(id, statement, [&](SqliteQuery& row) { bind(row, *at); });
      if (!changed) return changed.error();
      if (*changed) {
        if (auto done = audit(line, *at); !done) return done.error();
        return JobAnswer{JobAnswer::Kind::changed, *changed};
      }
      const auto found = status_of(id, statements::jobs_show_status, [](SqliteQuery&) {});
      if (!found) return found.error();
      if (!*found) return JobAnswer{};
      return JobAnswer{JobAnswer::Kind::refused, *found};
    });
  }

  template <class Bind>
  Result<std::optional<DeliveryStatus>> status_of(const DeliveryId& id, std::string_view statement,
                                                  Bind bind) {
    auto row = writer_.query(statement);
    row.bind(":id", id_text(id.value()));
    bind(row);
    std::optional<DeliveryStatus> status;
    while (row.next())
      status = parse_delivery_status(row.text(0));
    if (auto read = row.result(); !read) return read.error();
    return status;
  }

  /// A change that changes nothing is no line in the audit.
  template <class Bind>
  Result<bool> change_queue(std::optional<Timestamp> now, Deadline deadline,
                            const JobAuditLine& line, std::string_view statement, Bind bind) {
    if (auto checked = check_queue_name(line.object); !checked) return checked.error();
    return writer_.write(deadline, [&]() -> Result<bool> {
      const auto at = writer_.now(now);
      if (!at) return at.error();
      auto row = writer_.query(statement);
      row.bind(":queue", line.object);
      bind(row, *at);
      if (auto done = row.run(); !done) return done.error();
      if (writer_.changes() == 0) return false;
      if (auto done = audit(line, *at); !done) return done.error();
      return true;
    });
  }

  Result<void> audit(const JobAuditLine& line, Timestamp now) {
    auto row = writer_.query(statements::audit_insert);
    row.bind(":now", timestamp_text(now)).bind(":who", line.who.name);
    row.bind(":action", line.action).bind(":object", line.object);
    row.bind(":reason", line.who.reason).bind(":detail", line.detail);
    return row.run();
  }

  SqliteConnection reader_;
  SqliteConnection writer_;
  std::unique_ptr<Random> random_;
  IdGenerator ids_{system_clock(), *random_};
};

}  // namespace
}  // namespace store::sqlite

std::unique_ptr<JobOperations> make_sqlite_job_operations(SqliteOptions options) {
  return std::make_unique<store::sqlite::SqliteJobOperations>(options);
}

}  // namespace postrider
