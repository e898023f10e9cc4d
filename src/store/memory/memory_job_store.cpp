#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/assert.hpp"
#include "store/common/attempt_check.hpp"
#include "store/common/token_bucket.hpp"
#include "store/memory/memory_database.hpp"
#include "store/memory/memory_events.hpp"
#include "values/job_hooks.hpp"

namespace postrider::testing {
namespace {

/// Both halves of a job's row, for reading.
struct JobEntry {
  const Delivery* delivery = nullptr;
  const JobColumns* job = nullptr;
};

milliseconds wait_until(Timestamp at, Timestamp now) {
  return std::max(std::chrono::ceil<milliseconds>(at - now), milliseconds::zero());
}

bool is_alive(const WorkerRow& worker) {
  return worker.info.state != WorkerState::stopped && worker.info.state != WorkerState::dead;
}

bool is_alive(const Tables& tables, const WorkerId& id) {
  const auto worker = tables.workers().find(id);
  return worker != tables.workers().end() && is_alive(worker->second);
}

/// Everything in the order of delivery ids.
std::vector<JobEntry> all_jobs(const Tables& tables) {
  std::vector<JobEntry> entries;
  for (const auto& [id, job] : tables.jobs())
    entries.push_back({tables.find_delivery(id), &job});
  return entries;
}

/// The job while this dispatch of it is current.
std::optional<JobEntry> current_attempt(const Tables& tables, const DeliveryId& id,
                                        const DispatchId& dispatch) {
  const auto* job = tables.find_job(id);
  if (job == nullptr) return std::nullopt;
  const auto* delivery = tables.find_delivery(id);
  if (delivery->status != DeliveryStatus::dispatched || delivery->dispatch_id != dispatch) {
    return std::nullopt;
  }
  return JobEntry{delivery, job};
}

/// Requires: it is dispatched, and that dispatch is counted as a death.
Job to_job(const Tables& tables, const JobEntry& entry) {
  const auto& [delivery, columns] = entry;
  Job job;
  job.delivery_id = delivery->id;
  job.event_id = delivery->event_id;
  job.event_seq = delivery->event_seq;
  job.route = delivery->route;
  job.job = columns->policy.job;
  job.queue = columns->policy.queue;
  job.attempts = delivery->attempts;
  job.retry_delays = delivery->retry_delays;
  job.timeout = delivery->timeout;
  job.timeout_limit = columns->policy.timeout_limit;
  job.on_worker_death = columns->policy.on_worker_death;
  job.max_deaths = columns->policy.max_deaths;
  job.deaths = std::max(columns->deaths - 1, 0);
  job.snoozes = columns->snoozes;
  job.interruptions = columns->interruptions;
  job.cancel_requested = columns->cancel_requested_at.has_value();
  job.hooks = hook_context(columns->policy.hooks, *tables.event_of(*delivery).event);
  return job;
}

Task to_task(const Tables& tables, const JobEntry& entry, Timestamp now) {
  const auto& event = tables.event_of(*entry.delivery);
  Task task;
  task.job = to_job(tables, entry);
  task.dispatch_id = *entry.delivery->dispatch_id;
  task.event = event.event;
  task.checkpoint = entry.job->checkpoint;
  task.until_timeout = wait_until(*entry.delivery->delivery_timeout_at, now);
  task.malformed = event.malformed;
  return task;
}

/// Begins attempts, in one walk over the jobs that wait.
class JobTaker {
 public:
  JobTaker(Tables& tables, IdGenerator& ids, std::optional<WorkerId> worker, std::size_t limit,
           Timestamp now)
      : tables_(tables),
        ids_(ids),
        worker_(worker),
        limit_(std::max<std::size_t>(limit, 1)),
        now_(now) {}

  TaskBatch take(const TakeRequest& request) {
    for (const auto& share : request.queues) {
      auto waiting = pending([&](const JobEntry& entry) {
        return entry.job->transport == JobTransport::database &&
               entry.job->policy.queue == share.queue;
      });
      std::sort(waiting.begin(), waiting.end(), [&](const auto& a, const auto& b) {
        return urgency(a, request.ageing) < urgency(b, request.ageing);
      });
      take_from(waiting, std::min(share.at_most, limit_ - batch_.tasks.size()));
    }
    return finish();
  }

  TaskBatch hand_out(const HandOutRequest& request) {
    for (const auto& route : request.routes) {
      auto waiting = pending([&](const JobEntry& entry) {
        return entry.job->transport == JobTransport::broker && entry.delivery->route == route;
      });
      std::sort(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) {
        return std::tie(a.delivery->available_at, a.delivery->id) <
               std::tie(b.delivery->available_at, b.delivery->id);
      });
      take_from(waiting, limit_ - batch_.tasks.size());
    }
    return finish();
  }

 private:
  template <class Predicate>
  std::vector<JobEntry> pending(Predicate wanted) const {
    auto entries = all_jobs(tables_);
    std::erase_if(entries, [&](const JobEntry& entry) {
      return entry.delivery->status != DeliveryStatus::pending || !wanted(entry) ||
             is_paused(entry.job->policy.queue);
    });
    return entries;
  }

  [[nodiscard]] bool is_paused(const std::string& queue) const {
    const auto row = tables_.queues().find(queue);
    return row != tables_.queues().end() && row->second.paused_at.has_value();
  }

  /// Less is sooner.
  [[nodiscard]] std::tuple<std::int64_t, Timestamp, DeliveryId> urgency(const JobEntry& entry,
                                                                        milliseconds ageing) const {
    std::int64_t priority = entry.job->policy.priority;
    const auto& due_at = entry.delivery->available_at;
    if (ageing > milliseconds::zero() && due_at <= now_) priority -= (now_ - due_at) / ageing;
    return {priority, due_at, entry.delivery->id};
  }

  void take_from(const std::vector<JobEntry>& waiting, std::size_t wanted) {
    std::size_t taken = 0;
    for (const auto& entry : waiting) {
      if (entry.delivery->available_at > now_) {
        note_wait(wait_until(entry.delivery->available_at, now_));
        continue;
      }
      const auto& policy = entry.job->policy;
      const auto slot = policy.serial_key.empty() ? std::optional(0) : free_slot(entry);
      if (!slot) continue;
      if (taken == wanted) {
        batch_.more = true;
        continue;
      }
      if (!admit(policy.queue)) continue;
      dispatch(entry, policy.serial_key.empty() ? std::nullopt : slot);
      ++taken;
    }
  }

  /// Nothing while as many earlier ones of its key are open as may run at once.
  [[nodiscard]] std::optional<int> free_slot(const JobEntry& entry) const {
    const auto& policy = entry.job->policy;
    const auto place = [](const JobEntry& of) {
      return std::tie(of.delivery->event_seq, of.delivery->id);
    };
    int earlier = 0;
    std::set<int> occupied;
    for (const auto& other : all_jobs(tables_)) {
      if (other.job->policy.queue != policy.queue ||
          other.job->policy.serial_key != policy.serial_key) {
        continue;
      }
      const auto status = other.delivery->status;
      const bool open = status == DeliveryStatus::pending || status == DeliveryStatus::dispatched;
      if (open && place(other) < place(entry)) ++earlier;
      if (other.job->serial_slot) occupied.insert(*other.job->serial_slot);
    }
    int slot = 0;
    while (occupied.contains(slot))
      ++slot;
    if (earlier >= policy.serial_limit || slot >= policy.serial_limit) return std::nullopt;
    return slot;
  }

  /// Takes a token where the queue has a rate.
  bool admit(const std::string& queue) {
    const auto row = tables_.queues().find(queue);
    if (row == tables_.queues().end() || !row->second.rate_limit) return true;
    auto& rule = row->second;
    store::TokenBucket bucket(*rule.rate_limit, rule.rate_period, rule.tokens, rule.refilled_at,
                              now_);
    const bool admitted = bucket.take();
    if (!admitted) note_wait(bucket.next_in());
    rule.tokens = bucket.tokens();
    rule.refilled_at = now_;
    return admitted;
  }

  void dispatch(const JobEntry& entry, std::optional<int> slot) {
    Delivery delivery = *entry.delivery;
    JobColumns job = *entry.job;
    delivery.status = DeliveryStatus::dispatched;
    delivery.dispatch_id = DispatchId(ids_.next());
    delivery.dispatched_at = now_;
    delivery.delivery_timeout_at = now_ + delivery.timeout;
    job.worker = worker_;
    job.serial_slot = slot;
    ++job.deaths;
    job.result.reset();
    job.percent.reset();
    job.note.clear();
    tables_.write_job(std::move(delivery), std::move(job));
    batch_.tasks.push_back(to_task(tables_, entry, now_));
  }

  void note_wait(milliseconds wait) {
    batch_.next_in = std::min(batch_.next_in.value_or(wait), wait);
  }

  TaskBatch finish() {
    if (batch_.more) batch_.next_in = milliseconds::zero();
    return std::move(batch_);
  }

  Tables& tables_;
  IdGenerator& ids_;
  std::optional<WorkerId> worker_;
  std::size_t limit_;
  Timestamp now_;
  TaskBatch batch_;
};

void keep_failure(std::vector<JobFailure>& failures, const JobUpdate& update, Timestamp now) {
  failures.push_back({update.dispatch_id, update.attempts, now, update.failure_code,
                      update.failure_detail, update.worker});
  std::erase_if(failures, [&](const auto& failure) {
    return failure.attempt <= update.attempts - JobFailure::most_kept;
  });
}

RecordAnswer record_end(Tables& tables, const JobUpdate& update, Timestamp now) {
  POSTRIDER_ASSERT(update.status != DeliveryStatus::dispatched &&
                   update.status != DeliveryStatus::held);
  const auto current = current_attempt(tables, update.delivery_id, update.dispatch_id);
  if (!current) {
    const auto* job = tables.find_job(update.delivery_id);
    if (job == nullptr || !job->result ||
        tables.find_delivery(update.delivery_id)->dispatch_id != update.dispatch_id) {
      return RecordAnswer::stale;
    }
    return *job->result == update.result ? RecordAnswer::repeated : RecordAnswer::conflict;
  }
  if (update.unless_started && current->job->worker) return RecordAnswer::stale;
  if (update.status == DeliveryStatus::pending && current->job->cancel_requested_at) {
    return RecordAnswer::cancel_requested;
  }
  Delivery delivery = *current->delivery;
  JobColumns job = *current->job;
  delivery.status = update.status;
  delivery.attempts = update.attempts;
  delivery.delivery_timeout_at.reset();
  delivery.failure_code = update.failure_code;
  delivery.failure_detail = update.failure_detail;
  job.deaths = update.deaths;
  job.snoozes = update.snoozes;
  job.interruptions = update.interruptions;
  job.serial_slot.reset();
  job.result = update.result;
  if (update.keeps_failure) keep_failure(job.failures, update, now);
  if (update.status == DeliveryStatus::pending) {
    delivery.available_at = now + update.available_in;
    delivery.dispatched_at.reset();
    job.worker.reset();
  } else {
    delivery.finished_at = now;
  }
  tables.write_job(std::move(delivery), std::move(job));
  return RecordAnswer::recorded;
}

AttemptState touch_attempt(Tables& tables, const AttemptUpdate& update, Timestamp now) {
  /// Longer than any limit of a route, and short enough for arithmetic in microseconds.
  constexpr milliseconds most_extension = std::chrono::hours(24 * 365);
  const auto current = current_attempt(tables, update.delivery_id, update.dispatch_id);
  if (!current) return {};
  Delivery delivery = *current->delivery;
  JobColumns job = *current->job;
  if (update.extend) {
    const auto latest = *delivery.dispatched_at + job.policy.timeout_limit;
    const auto asked = std::min(now + std::min(*update.extend, most_extension), latest);
    delivery.delivery_timeout_at = std::max(*delivery.delivery_timeout_at, asked);
  }
  if (update.percent) job.percent = update.percent;
  if (update.note) job.note = *update.note;
  if (update.checkpoint) job.checkpoint = *update.checkpoint;
  const AttemptState state{true, job.cancel_requested_at.has_value(),
                           wait_until(*delivery.delivery_timeout_at, now)};
  // Nothing becomes due by it, so nobody is told.
  tables.write_job_quietly(std::move(delivery), std::move(job));
  return state;
}

class MemoryJobStore final : public JobStore {
 public:
  explicit MemoryJobStore(std::shared_ptr<MemoryDatabase> database)
      : database_(std::move(database)) {}

  JobStoreTraits traits() const override { return {"memory", false, false}; }
  Result<void> check_schema(Deadline /*deadline*/) override { return {}; }

  Result<HeartbeatAnswer> heartbeat(const HeartbeatRequest& request,
                                    Deadline /*deadline*/) override;

  Result<void> declare_dead(WorkerId worker, std::optional<Timestamp> /*now*/,
                            Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    const auto row = database_->tables.workers().find(worker);
    if (row != database_->tables.workers().end() && is_alive(row->second)) {
      row->second.info.state = WorkerState::dead;
    }
    return {};
  }

  Result<std::vector<WorkerInfo>> workers_on(const std::string& host,
                                             Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    std::vector<WorkerInfo> workers;
    for (const auto& [id, row] : database_->tables.workers()) {
      if (row.info.host == host && is_alive(row)) workers.push_back(row.info);
    }
    return workers;
  }

  Result<TaskBatch> take(const TakeRequest& request, Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    if (!is_alive(database_->tables, request.worker)) return TaskBatch{};
    const auto now = database_->time_of(request.now);
    auto batch = JobTaker(database_->tables, database_->ids, request.worker, request.limit, now)
                     .take(request);
    seen_rings_ = database_->tables.rings();
    return batch;
  }

  Result<StartAnswer> start(const StartRequest& request, Deadline /*deadline*/) override;

  Result<TaskBatch> hand_out(const HandOutRequest& request, Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    const auto now = database_->time_of(request.now);
    return JobTaker(database_->tables, database_->ids, std::nullopt, request.limit, now)
        .hand_out(request);
  }

  Result<std::vector<RecordAnswer>> record(const RecordRequest& request,
                                           Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    const auto now = database_->time_of(request.now);
    if (auto free = check_events(request); !free) return free.error();
    std::vector<RecordAnswer> answers;
    for (const auto& update : request.updates) {
      answers.push_back(record_end(database_->tables, update, now));
      if (answers.back() != RecordAnswer::recorded) continue;
      if (auto told = insert_events(*database_, update.events); !told) return told.error();
    }
    return answers;
  }

  Result<AttemptState> touch(const AttemptUpdate& update, Deadline /*deadline*/) override {
    if (auto checked = store::check_attempt(update, "memory"); !checked) return checked.error();
    const MutexLock lock(database_->mutex);
    return touch_attempt(database_->tables, update, database_->time_of(update.now));
  }

  Result<LostBatch> lost(const LostRequest& request, Deadline /*deadline*/) override;

  Result<void> await_work(const std::vector<std::string>& queues, Deadline deadline) override;

  void wake() noexcept override {
    const MutexLock lock(database_->mutex);
    woken_ = true;
    database_->tables.rung().notify_all();
  }

 private:
  /// There is no rollback here, so what could fail is found before anything is changed.
  Result<void> check_events(const RecordRequest& request) const
      POSTRIDER_REQUIRES(database_->mutex) {
    std::vector<NewEvent> events;
    for (const auto& update : request.updates)
      events.insert(events.end(), update.events.begin(), update.events.end());
    return check_free(database_->tables, events);
  }

  std::shared_ptr<MemoryDatabase> database_;
  std::uint64_t seen_rings_ POSTRIDER_GUARDED_BY(database_->mutex) = 0;
  bool woken_ POSTRIDER_GUARDED_BY(database_->mutex) = false;
};

Result<HeartbeatAnswer> MemoryJobStore::heartbeat(const HeartbeatRequest& request,
                                                  Deadline /*deadline*/) {
  const MutexLock lock(database_->mutex);
  auto& tables = database_->tables;
  const auto now = database_->time_of(request.now);
  const auto [row, fresh] =
      tables.workers().try_emplace(request.worker.id, WorkerRow{request.worker, now, now});
  if (!fresh && is_alive(row->second)) {
    row->second.info.queues = request.worker.queues;
    row->second.info.state = request.worker.state;
    row->second.last_seen_at = now;
  }
  HeartbeatAnswer answer;
  answer.known = row->second.info.state == request.worker.state;

  std::map<DispatchId, bool> current;
  for (const auto& entry : all_jobs(tables)) {
    if (entry.delivery->status != DeliveryStatus::dispatched) continue;
    if (entry.job->worker != request.worker.id) continue;
    current.emplace(*entry.delivery->dispatch_id, entry.job->cancel_requested_at.has_value());
  }
  for (const auto& id : request.running) {
    const auto found = current.find(id);
    if (found == current.end()) {
      answer.lost.push_back(id);
    } else if (found->second) {
      answer.cancelled.push_back(id);
    }
  }
  return answer;
}

Result<StartAnswer> MemoryJobStore::start(const StartRequest& request, Deadline /*deadline*/) {
  using Kind = StartAnswer::Kind;
  const MutexLock lock(database_->mutex);
  auto& tables = database_->tables;
  if (!is_alive(tables, request.worker)) return StartAnswer{Kind::worker_gone, std::nullopt};
  const auto entry = current_attempt(tables, request.delivery_id, request.dispatch_id);
  if (!entry) return StartAnswer{};
  if (entry->job->policy.job != request.job) return StartAnswer{Kind::wrong_job, std::nullopt};
  const bool is_ours = request.again && entry->job->worker == request.worker;
  if (entry->job->worker && !is_ours) return StartAnswer{Kind::taken, std::nullopt};
  JobColumns job = *entry->job;
  job.worker = request.worker;
  tables.write_job_quietly(*entry->delivery, std::move(job));
  return StartAnswer{Kind::started, to_task(tables, *entry, database_->time_of(request.now))};
}

Result<LostBatch> MemoryJobStore::lost(const LostRequest& request, Deadline /*deadline*/) {
  const MutexLock lock(database_->mutex);
  auto& tables = database_->tables;
  const auto now = database_->time_of(request.now);
  LostBatch batch;
  for (auto& [id, worker] : tables.workers()) {
    if (!is_alive(worker) || worker.last_seen_at > now - request.dead_after) continue;
    worker.info.state = WorkerState::dead;
    batch.died.push_back(id);
  }
  const auto is_gone = [&workers = tables.workers()](const std::optional<WorkerId>& id) {
    if (!id) return false;
    const auto worker = workers.find(*id);
    return worker == workers.end() || worker->second.info.state == WorkerState::dead;
  };
  std::vector<LostAttempt> overdue;
  for (const auto& entry : all_jobs(tables)) {
    if (entry.delivery->status != DeliveryStatus::dispatched) continue;
    const bool died = is_gone(entry.job->worker);
    if (!died && !is_overdue(*entry.delivery, now)) continue;
    auto& found = died ? batch.attempts : overdue;
    found.push_back({to_job(tables, entry), *entry.delivery->dispatch_id, died, entry.job->worker});
  }
  batch.attempts.insert(batch.attempts.end(), overdue.begin(), overdue.end());
  const auto limit = std::max<std::size_t>(request.limit, 1);
  batch.more = batch.attempts.size() > limit;
  if (batch.more) batch.attempts.resize(limit);
  return batch;
}

Result<void> MemoryJobStore::await_work(const std::vector<std::string>& /*queues*/,
                                        Deadline deadline) {
  const MutexLock lock(database_->mutex);
  auto& tables = database_->tables;
  while (!woken_ && seen_rings_ == tables.rings() && !deadline.passed())
    tables.rung().wait_for(database_->mutex, deadline.remaining());
  seen_rings_ = tables.rings();
  woken_ = false;
  return {};
}

}  // namespace

std::unique_ptr<JobStore> make_memory_job_store(std::shared_ptr<MemoryDatabase> database) {
  return std::make_unique<MemoryJobStore>(std::move(database));
}

}  // namespace postrider::testing
