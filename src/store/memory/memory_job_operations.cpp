#include <algorithm>
#include <utility>

#include <postrider/job_operations.hpp>

#include "store/memory/memory_database.hpp"
#include "store/memory/memory_events.hpp"

namespace postrider::testing {
namespace {

milliseconds age_of(Timestamp since, Timestamp now) {
  return std::max(std::chrono::duration_cast<milliseconds>(now - since), milliseconds::zero());
}

void keep_oldest(std::optional<milliseconds>& oldest, milliseconds age) {
  oldest = std::max(oldest.value_or(age), age);
}

std::optional<std::string> if_not_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

/// On its row a dispatch counts as a death until its end is recorded.
int ended_deaths(const Delivery& delivery, const JobColumns& job) {
  return job.deaths - (delivery.status == DeliveryStatus::dispatched ? 1 : 0);
}

void count_waiting(JobCounts& counts, const Delivery& delivery, Timestamp now) {
  if (delivery.available_at > now) {
    ++counts.delayed;
    return;
  }
  ++counts.due;
  keep_oldest(counts.oldest_due_age, age_of(delivery.available_at, now));
}

void count_running(JobCounts& counts, const Delivery& delivery, Timestamp now) {
  ++counts.dispatched;
  if (is_overdue(delivery, now)) ++counts.overdue;
  keep_oldest(counts.oldest_dispatched_age, age_of(delivery.dispatched_at.value_or(now), now));
}

void count_status(JobCounts& counts, const Delivery& delivery, bool superseded, Timestamp now) {
  switch (delivery.status) {
    case DeliveryStatus::pending:
      return count_waiting(counts, delivery, now);
    case DeliveryStatus::dispatched:
      return count_running(counts, delivery, now);
    case DeliveryStatus::completed:
      ++counts.completed;
      return;
    case DeliveryStatus::failed:
      counts.failed += superseded ? 0 : 1;
      return;
    case DeliveryStatus::discarded:
      ++counts.discarded;
      return;
    case DeliveryStatus::cancelled:
      ++counts.cancelled;
      return;
    case DeliveryStatus::held:  // a job is never held: its event is
      return;
  }
}

std::vector<JobCounts> count_jobs(const Tables& tables, Timestamp now) {
  std::map<std::pair<std::string, std::string>, JobCounts> by_name;
  for (const auto& [id, job] : tables.jobs()) {
    const auto& delivery = *tables.find_delivery(id);
    auto& counts = by_name[{job.policy.queue, job.policy.job}];
    counts.queue = job.policy.queue;
    counts.job = job.policy.job;
    counts.retries += delivery.attempts;
    counts.deaths += ended_deaths(delivery, job);
    counts.snoozes += job.snoozes;
    counts.interruptions += job.interruptions;
    const bool superseded =
        tables.is_superseded({delivery.event_seq, delivery.route, delivery.generation});
    count_status(counts, delivery, superseded, now);
  }
  std::vector<JobCounts> counted;
  for (auto& [name, counts] : by_name)
    counted.push_back(std::move(counts));
  return counted;
}

std::vector<QueueState> queue_states(const Tables& tables) {
  std::vector<QueueState> states;
  for (const auto& [name, row] : tables.queues()) {
    if (!row.paused_at && !row.rate_limit) continue;
    QueueState state{name, row.paused_at, row.paused_by, row.reason, std::nullopt};
    if (row.rate_limit) state.rate_limit = RateLimit{*row.rate_limit, row.rate_period};
    states.push_back(std::move(state));
  }
  return states;
}

JobDetail detail_of(const Tables& tables, const Delivery& delivery, const JobColumns& job) {
  JobDetail detail;
  detail.delivery = delivery;
  detail.job = job.policy.job;
  detail.queue = job.policy.queue;
  detail.transport = job.transport;
  detail.priority = job.policy.priority;
  detail.serial_key = if_not_empty(job.policy.serial_key);
  detail.serial_limit = detail.serial_key ? job.policy.serial_limit : 0;
  detail.unique_key = if_not_empty(job.policy.unique_key);
  detail.on_worker_death = job.policy.on_worker_death;
  detail.max_deaths = job.policy.max_deaths;
  detail.timeout_limit = job.policy.timeout_limit;
  detail.deaths = ended_deaths(delivery, job);
  detail.snoozes = job.snoozes;
  detail.interruptions = job.interruptions;
  detail.worker = job.worker;
  if (job.worker && tables.workers().contains(*job.worker)) {
    const auto& worker = tables.workers().at(*job.worker).info;
    detail.worker_name = worker.name;
    detail.worker_host = worker.host;
  }
  detail.cancel_requested_at = job.cancel_requested_at;
  detail.percent = job.percent;
  detail.note = job.note;
  detail.checkpoint_bytes = static_cast<std::int64_t>(job.checkpoint.size());
  const auto& event = *tables.event_of(delivery).event;
  detail.event_type = event.type;
  detail.aggregate = event.aggregate;
  detail.hooks = job.policy.hooks;
  return detail;
}

bool is_meant(const JobFilter& filter, const Delivery& delivery, const JobColumns& job) {
  return (!filter.queue || *filter.queue == job.policy.queue) &&
         (!filter.job || *filter.job == job.policy.job) &&
         (!filter.status || *filter.status == delivery.status);
}

bool lives(WorkerState state) {
  return state != WorkerState::stopped && state != WorkerState::dead;
}

class MemoryJobOperations final : public JobOperations {
 public:
  explicit MemoryJobOperations(std::shared_ptr<MemoryDatabase> database)
      : database_(std::move(database)) {}

  Result<JobStatus> status(std::optional<Timestamp> now, Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    return JobStatus{count_jobs(database_->tables, database_->time_of(now)),
                     queue_states(database_->tables)};
  }

  Result<JobPage> jobs(const JobFilter& filter, Deadline /*deadline*/) override {
    if (auto checked = postrider::check(filter); !checked) return checked.error();
    const MutexLock lock(database_->mutex);
    const auto& tables = database_->tables;
    JobPage page;
    std::size_t examined = 0;
    std::optional<DeliveryId> last;
    for (auto row = tables.jobs().rbegin(); row != tables.jobs().rend(); ++row) {
      const auto& [id, job] = *row;
      if (filter.after && id >= *filter.after) continue;
      if (page.jobs.size() == filter.limit || examined == filter.examine) {
        page.next = last;
        break;
      }
      ++examined;
      last = id;
      const auto& delivery = *tables.find_delivery(id);
      if (is_meant(filter, delivery, job)) page.jobs.push_back(detail_of(tables, delivery, job));
    }
    return page;
  }

  Result<std::optional<JobDetail>> job(const DeliveryId& id, Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    const auto* job = database_->tables.find_job(id);
    if (job == nullptr) return std::optional<JobDetail>();
    auto detail = detail_of(database_->tables, *database_->tables.find_delivery(id), *job);
    detail.failures = job->failures;
    return std::optional(std::move(detail));
  }

  Result<std::vector<ListedWorker>> workers(bool ended, std::optional<Timestamp> now,
                                            Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    const auto at = database_->time_of(now);
    std::vector<ListedWorker> workers;
    for (const auto& [id, row] : database_->tables.workers()) {
      if (!ended && !lives(row.info.state)) continue;
      workers.push_back({row.info, row.started_at, age_of(row.last_seen_at, at), running_of(id)});
    }
    std::sort(workers.begin(), workers.end(), [](const auto& one, const auto& other) {
      return std::tie(one.started_at, one.info.id) > std::tie(other.started_at, other.info.id);
    });
    if (workers.size() > most_workers) workers.resize(most_workers);
    return workers;
  }

  Result<EnqueueAnswer> enqueue(const EnqueueRequest& request, const Operator& who,
                                std::optional<Timestamp> now, Deadline /*deadline*/) override {
    if (auto checked = postrider::check(request); !checked) return checked.error();
    const MutexLock lock(database_->mutex);
    if (const auto* earlier = find_unique(request.policy)) {
      return EnqueueAnswer{earlier->id, earlier->event_id, false};
    }
    const auto at = database_->time_of(now);
    const auto ids = insert_events(*database_, {&request.event, 1});
    if (!ids) return ids.error();
    auto& tables = database_->tables;
    auto& event = tables.events().rbegin()->second;
    event.routed_at = at;
    const auto delivery = delivery_of(request, *event.event, at);
    JobColumns job;
    job.policy = request.policy;
    tables.insert_job(delivery, std::move(job));
    tables.audit().push_back({at, "job_enqueue", delivery.id.value().to_string(), who});
    return EnqueueAnswer{delivery.id, delivery.event_id, true};
  }

  Result<JobAnswer> cancel(const DeliveryId& id, const Operator& who, std::optional<Timestamp> now,
                           Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    auto& tables = database_->tables;
    const auto* row = tables.find_job(id);
    if (row == nullptr) return JobAnswer{};
    auto job = *row;
    auto delivery = *tables.find_delivery(id);
    const bool runs = delivery.status == DeliveryStatus::dispatched;
    if (!runs && delivery.status != DeliveryStatus::pending) {
      return JobAnswer{JobAnswer::Kind::refused, delivery.status};
    }
    if (!job.cancel_requested_at || !runs) {
      const auto at = database_->time_of(now);
      job.cancel_requested_at = at;
      if (!runs) end_as_cancelled(delivery, at);
      tables.write_job(delivery, std::move(job));
      tables.audit().push_back({at, "job_cancel", id.value().to_string(), who});
    }
    return JobAnswer{runs ? JobAnswer::Kind::requested : JobAnswer::Kind::changed, delivery.status};
  }

  Result<JobAnswer> reschedule(const DeliveryId& id, const DueTime& due, const Operator& who,
                               std::optional<Timestamp> now, Deadline /*deadline*/) override {
    if (auto checked = postrider::check(due); !checked) return checked.error();
    const MutexLock lock(database_->mutex);
    auto& tables = database_->tables;
    const auto* row = tables.find_job(id);
    if (row == nullptr) return JobAnswer{};
    auto job = *row;
    auto delivery = *tables.find_delivery(id);
    if (delivery.status != DeliveryStatus::pending) {
      return JobAnswer{JobAnswer::Kind::refused, delivery.status};
    }
    const auto at = database_->time_of(now);
    delivery.available_at = due.at.value_or(at + due.in);
    tables.write_job(delivery, std::move(job));
    tables.audit().push_back({at, "job_reschedule", id.value().to_string(), who});
    return JobAnswer{JobAnswer::Kind::changed, delivery.status};
  }

  Result<bool> queue_pause(const std::string& queue, const Operator& who,
                           std::optional<Timestamp> now, Deadline /*deadline*/) override {
    return change_queue(queue, "queue_pause", who, now, [&](QueueRow& row, Timestamp at) {
      if (row.paused_at) return false;
      row.paused_at = at;
      row.paused_by = who.name;
      row.reason = who.reason;
      return true;
    });
  }

  Result<bool> queue_resume(const std::string& queue, const Operator& who,
                            std::optional<Timestamp> now, Deadline /*deadline*/) override {
    return change_queue(queue, "queue_resume", who, now, [](QueueRow& row, Timestamp) {
      if (!row.paused_at) return false;
      row.paused_at.reset();
      row.paused_by.clear();
      row.reason.clear();
      return true;
    });
  }

  Result<bool> queue_limit(const std::string& queue, const std::optional<RateLimit>& rate_limit,
                           const Operator& who, std::optional<Timestamp> now,
                           Deadline /*deadline*/) override {
    if (rate_limit) {
      if (auto checked = postrider::check(*rate_limit); !checked) return checked.error();
    }
    return change_queue(queue, "queue_limit", who, now, [&](QueueRow& row, Timestamp at) {
      return rate_limit ? limit(row, *rate_limit, at) : unlimit(row);
    });
  }

 private:
  /// A new rate begins with a full bucket; a changed one keeps what was left, as far as it fits.
  static bool limit(QueueRow& row, const RateLimit& rate_limit, Timestamp now) {
    if (row.rate_limit == rate_limit.limit && row.rate_period == rate_limit.period) return false;
    const double full = rate_limit.limit;
    row.tokens = row.rate_limit ? std::min(row.tokens, full) : full;
    row.refilled_at = row.refilled_at.value_or(now);
    row.rate_limit = rate_limit.limit;
    row.rate_period = rate_limit.period;
    return true;
  }

  static bool unlimit(QueueRow& row) {
    if (!row.rate_limit) return false;
    row.rate_limit.reset();
    row.rate_period = milliseconds::zero();
    row.tokens = 0;
    row.refilled_at.reset();
    return true;
  }

  static void end_as_cancelled(Delivery& delivery, Timestamp now) {
    delivery.status = DeliveryStatus::cancelled;
    delivery.finished_at = now;
    delivery.failure_code = job_code::cancelled;
    delivery.failure_detail.clear();
  }

  [[nodiscard]] std::int64_t running_of(const WorkerId& worker) const
      POSTRIDER_REQUIRES(database_->mutex) {
    std::int64_t running = 0;
    for (const auto& [id, job] : database_->tables.jobs()) {
      if (job.worker != worker) continue;
      const auto& delivery = *database_->tables.find_delivery(id);
      running += delivery.status == DeliveryStatus::dispatched ? 1 : 0;
    }
    return running;
  }

  /// Null when there is none.
  [[nodiscard]] const Delivery* find_unique(const JobPolicy& policy) const
      POSTRIDER_REQUIRES(database_->mutex) {
    if (policy.unique_key.empty()) return nullptr;
    for (const auto& [id, job] : database_->tables.jobs()) {
      if (job.policy.job != policy.job || job.policy.unique_key != policy.unique_key) continue;
      const auto* delivery = database_->tables.find_delivery(id);
      if (delivery->status == DeliveryStatus::pending ||
          delivery->status == DeliveryStatus::dispatched) {
        return delivery;
      }
    }
    return nullptr;
  }

  [[nodiscard]] Delivery delivery_of(const EnqueueRequest& request, const Event& event,
                                     Timestamp now) POSTRIDER_REQUIRES(database_->mutex) {
    Delivery delivery;
    delivery.id = DeliveryId(database_->ids.next());
    delivery.event_seq = event.seq;
    delivery.event_id = event.id;
    delivery.route = enqueue_route;
    delivery.retry_delays = request.retry_delays;
    delivery.timeout = request.timeout;
    delivery.on_failed = OnFailed::skip;
    delivery.available_at = request.due.at.value_or(now + request.due.in);
    return delivery;
  }

  /// `change` tells whether it changed anything.
  template <class Change>
  Result<bool> change_queue(const std::string& queue, std::string action, const Operator& who,
                            std::optional<Timestamp> now, Change change) {
    if (auto checked = check_queue_name(queue); !checked) return checked.error();
    const MutexLock lock(database_->mutex);
    auto& tables = database_->tables;
    const auto at = database_->time_of(now);
    if (!change(tables.queues()[queue], at)) return false;
    tables.audit().push_back({at, std::move(action), queue, who});
    tables.ring();
    return true;
  }

  std::shared_ptr<MemoryDatabase> database_;
};

}  // namespace

std::unique_ptr<JobOperations> make_memory_job_operations(
    std::shared_ptr<MemoryDatabase> database) {
  return std::make_unique<MemoryJobOperations>(std::move(database));
}

}  // namespace postrider::testing
