#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <postrider/store/postgres.hpp>

#include "store/common/durations_codec.hpp"
#include "store/common/hooks_codec.hpp"
#include "store/common/strings_codec.hpp"
#include "store/postgres/postgres_connection.hpp"
#include "store/postgres/postgres_event_columns.hpp"
#include "store/postgres/postgres_rows.hpp"

namespace postrider {
namespace store::postgres {
namespace {

/// How often an enqueue is repeated whose unique key is taken and free again by turns.
constexpr int most_enqueue_tries = 3;

std::optional<milliseconds> age_since(const Rows& rows, int row, int column, Timestamp now) {
  const auto since = rows.time_if(row, column);
  if (!since) return std::nullopt;
  return std::max(std::chrono::duration_cast<milliseconds>(now - *since), milliseconds::zero());
}

JobCounts read_job_counts(const Rows& rows, int row) {
  const auto now = rows.time(row, 16);
  JobCounts counts;
  counts.queue = rows.text(row, 0);
  counts.job = rows.text(row, 1);
  counts.due = rows.integer(row, 2);
  counts.delayed = rows.integer(row, 3);
  counts.dispatched = rows.integer(row, 4);
  counts.overdue = rows.integer(row, 5);
  counts.completed = rows.integer(row, 6);
  counts.failed = rows.integer(row, 7);
  counts.discarded = rows.integer(row, 8);
  counts.cancelled = rows.integer(row, 9);
  counts.retries = rows.integer(row, 10);
  counts.deaths = rows.integer(row, 11);
  counts.snoozes = rows.integer(row, 12);
  counts.interruptions = rows.integer(row, 13);
  counts.oldest_due_age = age_since(rows, row, 14, now);
  counts.oldest_dispatched_age = age_since(rows, row, 15, now);
  return counts;
}

QueueState read_queue_state(const Rows& rows, int row) {
  QueueState state;
  state.queue = rows.text(row, 0);
  state.paused_at = rows.time_if(row, 1);
  state.paused_by = rows.text(row, 2);
  state.reason = rows.text(row, 3);
  if (!rows.is_null(row, 4)) {
    state.rate_limit = RateLimit{rows.small_integer(row, 4), milliseconds(rows.integer(row, 5))};
  }
  return state;
}

/// The columns of jobs_list and jobs_show.
JobDetail read_job_detail(const Rows& rows, int row) {
  JobDetail job;
  job.delivery = read_delivery_columns(rows, row).delivery;
  int column = delivery_columns;
  job.job = rows.text(row, column++);
  job.queue = rows.text(row, column++);
  job.transport = parse_job_transport(rows.text(row, column++)).value_or(job.transport);
  job.priority = rows.small_integer(row, column++);
  job.serial_key = rows.text_if(row, column++);
  job.serial_limit = rows.is_null(row, column) ? 0 : rows.small_integer(row, column);
  ++column;
  job.unique_key = rows.text_if(row, column++);
  job.on_worker_death =
      parse_on_worker_death(rows.text(row, column++)).value_or(job.on_worker_death);
  job.max_deaths = rows.small_integer(row, column++);
  job.timeout_limit = milliseconds(rows.integer(row, column++));
  job.deaths = rows.small_integer(row, column++);
  job.snoozes = rows.small_integer(row, column++);
  job.interruptions = rows.small_integer(row, column++);
  if (const auto worker = rows.uuid_if(row, column++)) job.worker = WorkerId(*worker);
  job.worker_name = rows.text(row, column++);
  job.worker_host = rows.text(row, column++);
  job.cancel_requested_at = rows.time_if(row, column++);
  if (!rows.is_null(row, column)) job.percent = rows.small_integer(row, column);
  ++column;
  job.note = rows.text(row, column++);
  job.checkpoint_bytes = rows.integer_if(row, column++).value_or(0);
  job.event_type = rows.text(row, column++);
  if (!rows.is_null(row, column)) {
    job.aggregate =
        Aggregate{std::string(rows.text(row, column)), std::string(rows.text(row, column + 1))};
  }
  column += 2;
  if (!rows.is_null(row, column)) {
    if (auto hooks = decode_hooks(rows.text(row, column))) job.hooks = std::move(hooks).value();
  }
  return job;
}

std::vector<JobFailure> read_failures(const Rows& rows) {
  std::vector<JobFailure> failures;
  for (int row = 0; row < rows.size(); ++row) {
    JobFailure failure;
    failure.dispatch_id = DispatchId(rows.uuid(row, 0));
    failure.attempt = rows.small_integer(row, 1);
    failure.failed_at = rows.time(row, 2);
    failure.code = rows.text(row, 3);
    failure.detail = rows.text(row, 4);
    if (const auto worker = rows.uuid_if(row, 5)) failure.worker = WorkerId(*worker);
    failures.push_back(std::move(failure));
  }
  return failures;
}

ListedWorker read_listed_worker(const Rows& rows, int row) {
  ListedWorker worker;
  worker.info.id = WorkerId(rows.uuid(row, 0));
  worker.info.name = rows.text(row, 1);
  worker.info.host = rows.text(row, 2);
  worker.info.pid = rows.integer(row, 3);
  worker.info.version = rows.text(row, 4);
  if (auto queues = decode_strings(rows.text(row, 5)))
    worker.info.queues = std::move(queues).value();
  worker.info.state = parse_worker_state(rows.text(row, 6)).value_or(WorkerState::dead);
  worker.started_at = rows.time(row, 7);
  worker.last_seen_age = age_since(rows, row, 8, rows.time(row, 10)).value_or(milliseconds::zero());
  worker.running = rows.integer(row, 9);
  return worker;
}

template <class Id>
void add_id(Parameters& parameters, const std::optional<Id>& id) {
  if (id) {
    parameters.uuid(id->value());
  } else {
    parameters.null();
  }
}

Call jobs_list_call(const JobFilter& filter, const std::optional<DeliveryId>& last) {
  Call call{"jobs_list"};
  add_id(call.parameters, filter.after);
  add_id(call.parameters, last);
  call.parameters.text_if(filter.queue).text_if(filter.job);
  call.parameters.text_if(filter.status ? std::optional(std::string(to_string(*filter.status)))
                                        : std::nullopt);
  call.parameters.integer(static_cast<std::int64_t>(filter.limit) + 1);
  return call;
}

Call call_at(std::string_view statement, const std::optional<Timestamp>& now) {
  Call call{statement};
  call.parameters.time_if(now);
  return call;
}

Call call_on(std::string_view statement, const DeliveryId& id) {
  Call call{statement};
  call.parameters.uuid(id.value());
  return call;
}

std::optional<std::string> if_not_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

/// What an enqueue writes, under ids that are made before.
struct NewJobRow {
  const EnqueueRequest& request;
  DeliveryId delivery_id;
  EventId event_id;
};

Call enqueue_call(const NewJobRow& row, const std::optional<Timestamp>& now) {
  const auto& policy = row.request.policy;
  auto call = call_at("jobs_enqueue", now);
  auto& parameters = call.parameters;
  parameters.uuid(row.delivery_id.value()).uuid(row.event_id.value());
  parameters.time_if(row.request.due.at).integer(row.request.due.in.count());
  parameters.text(encode_durations(row.request.retry_delays));
  parameters.integer(row.request.timeout.count()).text(policy.job).text(policy.queue);
  parameters.small_integer(policy.priority).text_if(if_not_empty(policy.serial_key));
  parameters.small_integer(policy.serial_limit).text_if(if_not_empty(policy.unique_key));
  parameters.text(to_string(policy.on_worker_death)).small_integer(policy.max_deaths);
  parameters.integer(policy.timeout_limit.count()).text_if(encode_hooks(policy.hooks));
  return call;
}

/// One line for the audit, beside who and why.
struct JobAuditLine {
  std::string_view action;
  std::string object;
  std::string detail = {};
};

class PostgresJobOperations final : public JobOperations {
 public:
  explicit PostgresJobOperations(PostgresOptions options)
      : connection_(std::move(options), Use::people), random_(system_random()) {}

  Result<JobStatus> status(std::optional<Timestamp> now, Deadline deadline) override {
    const std::vector<Call> calls = {call_at("jobs_count", now), {"queues_list"}};
    const auto results = connection_.read(calls, deadline);
    if (!results) return results.error();
    JobStatus status;
    for (int row = 0; row < results->at(0).size(); ++row)
      status.jobs.push_back(read_job_counts(results->at(0), row));
    for (int row = 0; row < results->at(1).size(); ++row)
      status.queues.push_back(read_queue_state(results->at(1), row));
    return status;
  }

  Result<JobPage> jobs(const JobFilter& filter, Deadline deadline) override {
    if (auto checked = check(filter); !checked) return checked.error();
    const auto last = bound_of(filter, deadline);
    if (!last) return last.error();
    const auto results =
        connection_.read(std::vector<Call>{jobs_list_call(filter, *last)}, deadline);
    if (!results) return results.error();
    const auto& rows = results->front();
    const auto size = std::min(rows.size(), static_cast<int>(filter.limit));
    JobPage page;
    for (int row = 0; row < size; ++row)
      page.jobs.push_back(read_job_detail(rows, row));
    page.next = size < rows.size() ? std::optional(page.jobs.back().delivery.id) : *last;
    return page;
  }

  Result<std::optional<JobDetail>> job(const DeliveryId& id, Deadline deadline) override {
    const std::vector<Call> calls = {call_on("jobs_show", id), call_on("jobs_failures", id)};
    const auto results = connection_.read(calls, deadline);
    if (!results) return results.error();
    if (results->front().empty()) return std::optional<JobDetail>();
    auto detail = read_job_detail(results->front(), 0);
    detail.failures = read_failures(results->at(1));
    return std::optional(std::move(detail));
  }

  Result<std::vector<ListedWorker>> workers(bool ended, std::optional<Timestamp> now,
                                            Deadline deadline) override {
    auto call = call_at("workers_list", now);
    call.parameters.boolean(ended).integer(static_cast<std::int64_t>(most_workers));
    const auto results = connection_.read(std::vector<Call>{std::move(call)}, deadline);
    if (!results) return results.error();
    std::vector<ListedWorker> workers;
    for (int row = 0; row < results->front().size(); ++row)
      workers.push_back(read_listed_worker(results->front(), row));
    return workers;
  }

  Result<EnqueueAnswer> enqueue(const EnqueueRequest& request, const Operator& who,
                                std::optional<Timestamp> now, Deadline deadline) override {
    if (auto checked = check(request); !checked) return checked.error();
    for (int i = 0; i < most_enqueue_tries; ++i) {
      auto answer = try_enqueue(request, who, now, deadline);
      if (!answer) return answer.error();
      if (*answer) return **answer;
    }
    return Error{ErrorCode::conflict, Disposition::retry,
                 "jobs with this unique key begin and end all the time. Try again.", "postgres",
                 ""};
  }

  Result<JobAnswer> cancel(const DeliveryId& id, const Operator& who, std::optional<Timestamp> now,
                           Deadline deadline) override {
    auto change = call_at("jobs_cancel", now);
    change.parameters.uuid(id.value());
    auto answer = change_job(std::move(change), {"job_cancel", id.value().to_string()}, id, who,
                             now, deadline);
    // Still dispatched: its worker is asked now, or was before.
    if (answer && answer->status == DeliveryStatus::dispatched) {
      answer->kind = JobAnswer::Kind::requested;
    }
    return answer;
  }

  Result<JobAnswer> reschedule(const DeliveryId& id, const DueTime& due, const Operator& who,
                               std::optional<Timestamp> now, Deadline deadline) override {
    if (auto checked = check(due); !checked) return checked.error();
    auto change = call_at("jobs_reschedule", now);
    change.parameters.uuid(id.value()).time_if(due.at).integer(due.in.count());
    return change_job(std::move(change), {"job_reschedule", id.value().to_string()}, id, who, now,
                      deadline);
  }

  Result<bool> queue_pause(const std::string& queue, const Operator& who,
                           std::optional<Timestamp> now, Deadline deadline) override {
    auto change = call_at("queues_pause", now);
    change.parameters.text(queue).text(who.name).text(who.reason);
    return change_queue(std::move(change), {"queue_pause", queue}, who, now, deadline);
  }

  Result<bool> queue_resume(const std::string& queue, const Operator& who,
                            std::optional<Timestamp> now, Deadline deadline) override {
    Call change{"queues_resume"};
    change.parameters.text(queue);
    return change_queue(std::move(change), {"queue_resume", queue}, who, now, deadline);
  }

  Result<bool> queue_limit(const std::string& queue, const std::optional<RateLimit>& rate_limit,
                           const Operator& who, std::optional<Timestamp> now,
                           Deadline deadline) override {
    if (!rate_limit) {
      Call change{"queues_unlimit"};
      change.parameters.text(queue);
      return change_queue(std::move(change), {"queue_limit", queue, "none"}, who, now, deadline);
    }
    if (auto checked = check(*rate_limit); !checked) return checked.error();
    auto change = call_at("queues_limit", now);
    change.parameters.text(queue).small_integer(rate_limit->limit);
    change.parameters.integer(rate_limit->period.count());
    const auto detail = fmt::format("{} in {} ms", rate_limit->limit, rate_limit->period.count());
    return change_queue(std::move(change), {"queue_limit", queue, detail}, who, now, deadline);
  }

 private:
  Result<std::optional<DeliveryId>> bound_of(const JobFilter& filter, Deadline deadline) {
    Call call{"jobs_bound"};
    add_id(call.parameters, filter.after);
    call.parameters.integer(static_cast<std::int64_t>(filter.examine) - 1);
    const auto results = connection_.read(std::vector<Call>{std::move(call)}, deadline);
    if (!results) return results.error();
    if (results->front().empty()) return std::optional<DeliveryId>();
    return std::optional(DeliveryId(results->front().uuid(0, 0)));
  }

  /// The open job with this unique key. In the transaction that is open.
  Result<std::optional<EnqueueAnswer>> find_unique(const JobPolicy& policy, Deadline deadline) {
    if (policy.unique_key.empty()) return std::optional<EnqueueAnswer>();
    Call call{"jobs_find_unique"};
    call.parameters.text(policy.job).text(policy.unique_key);
    const auto found = connection_.run(std::vector<Call>{std::move(call)}, deadline);
    if (!found) return found.error();
    const auto& rows = found->front();
    if (rows.empty()) return std::optional<EnqueueAnswer>();
    return std::optional(
        EnqueueAnswer{DeliveryId(rows.uuid(0, 0)), EventId(rows.uuid(0, 1)), false});
  }

  /// Nothing when the key was taken and is free again. Asked first is only what spares a number and
  /// a lock: that the key is unique, the index sees to.
  Result<std::optional<EnqueueAnswer>> try_enqueue(const EnqueueRequest& request,
                                                   const Operator& who,
                                                   std::optional<Timestamp> now,
                                                   Deadline deadline) {
    if (auto begun = connection_.begin(deadline); !begun) return begun.error();
    auto earlier = find_unique(request.policy, deadline);
    if (!earlier) return earlier.error();
    if (!*earlier) {
      const NewJobRow row{request, DeliveryId(ids_.next()),
                          request.event.id ? *request.event.id : EventId(ids_.next())};
      const auto stored = write_job(row, who, now, deadline);
      if (!stored) return stored.error();
      if (*stored) {
        if (auto committed = connection_.commit(deadline); !committed) return committed.error();
        return std::optional(EnqueueAnswer{row.delivery_id, row.event_id, true});
      }
      earlier = find_unique(request.policy, deadline);
    }
    connection_.rollback(deadline);
    return earlier;
  }

  /// False: its unique key is taken.
  Result<bool> write_job(const NewJobRow& row, const Operator& who, std::optional<Timestamp> now,
                         Deadline deadline) {
    NewEventColumns columns;
    if (auto added = columns.add(row.request.event, row.event_id); !added) {
      connection_.rollback(deadline);
      return added.error();
    }
    auto mark = call_at("jobs_enqueue_event", now);
    mark.parameters.uuid(row.event_id.value());
    const auto results =
        connection_.run(std::vector<Call>{{"events_insert", columns.insert_parameters()},
                                          std::move(mark),
                                          enqueue_call(row, now)},
                        deadline);
    if (!results) return results.error();
    if (results->back().empty()) return false;
    const auto& policy = row.request.policy;
    const JobAuditLine line{"job_enqueue", row.delivery_id.value().to_string(),
                            policy.queue + " " + policy.job};
    if (auto written = audit(line, who, now, deadline); !written) return written.error();
    return true;
  }

  /// `change` returns the status that it leaves, and no row where it changes nothing.
  Result<JobAnswer> change_job(Call change, const JobAuditLine& line, const DeliveryId& id,
                               const Operator& who, std::optional<Timestamp> now,
                               Deadline deadline) {
    if (auto begun = connection_.begin(deadline); !begun) return begun.error();
    const auto changed = connection_.run(std::vector<Call>{std::move(change)}, deadline);
    if (!changed) return changed.error();
    if (changed->front().empty()) return unchanged(id, deadline);
    if (auto written = audit(line, who, now, deadline); !written) return written.error();
    if (auto committed = connection_.commit(deadline); !committed) return committed.error();
    return JobAnswer{JobAnswer::Kind::changed, parse_delivery_status(changed->front().text(0, 0))};
  }

  Result<JobAnswer> unchanged(const DeliveryId& id, Deadline deadline) {
    const auto found =
        connection_.run(std::vector<Call>{call_on("jobs_show_status", id)}, deadline);
    if (!found) return found.error();
    connection_.rollback(deadline);
    if (found->front().empty()) return JobAnswer{};
    return JobAnswer{JobAnswer::Kind::refused, parse_delivery_status(found->front().text(0, 0))};
  }

  /// A change that changes nothing is no line in the audit.
  Result<bool> change_queue(Call change, const JobAuditLine& line, const Operator& who,
                            std::optional<Timestamp> now, Deadline deadline) {
    if (auto checked = check_queue_name(line.object); !checked) return checked.error();
    if (auto begun = connection_.begin(deadline); !begun) return begun.error();
    const auto changed = connection_.run(std::vector<Call>{std::move(change)}, deadline);
    if (!changed) return changed.error();
    const bool any = !changed->front().empty();
    if (any) {
      if (auto written = audit(line, who, now, deadline); !written) return written.error();
    }
    if (auto committed = connection_.commit(deadline); !committed) return committed.error();
    return any;
  }

  /// In the transaction that is open.
  Result<void> audit(const JobAuditLine& line, const Operator& who, std::optional<Timestamp> now,
                     Deadline deadline) {
    auto insert = call_at("audit_insert", now);
    insert.parameters.text(who.name).text(line.action).text(line.object).text(who.reason);
    insert.parameters.text(line.detail);
    const auto written = connection_.run(std::vector<Call>{std::move(insert)}, deadline);
    if (!written) return written.error();
    return {};
  }

  PostgresConnection connection_;
  std::unique_ptr<Random> random_;
  IdGenerator ids_{system_clock(), *random_};
};

}  // namespace
}  // namespace store::postgres

std::unique_ptr<JobOperations> make_postgres_job_operations(PostgresOptions options) {
  return std::make_unique<store::postgres::PostgresJobOperations>(std::move(options));
}

}  // namespace postrider
