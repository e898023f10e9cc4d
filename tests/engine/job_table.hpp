#pragma once
/// \file
/// A table of jobs for tests of the worker's threads: a few rows, and switches for what a database
/// can do to them. It knows nothing of due times, serial keys and leases; the conformance suite of
/// job stores is about those.

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <postrider/job_store.hpp>
#include <postrider/task_source_values.hpp>

namespace postrider::testing {

class JobTable {
 public:
  struct Row {
    Job job;
    std::shared_ptr<const Event> event;
    DeliveryStatus status = DeliveryStatus::pending;
    std::optional<DispatchId> dispatch_id;
    std::string checkpoint;
    int percent = 0;
    bool handed_out = false;  // to a broker, and no worker has started it
    JobUpdate last;           // what was recorded last
  };
  struct WorkerRow {
    WorkerInfo info;
    std::size_t heartbeats = 0;
  };

  /// A pending job, due at once.
  DeliveryId add(const std::string& name, milliseconds timeout = milliseconds(60'000)) {
    const std::lock_guard lock(mutex_);
    Row row;
    row.job.delivery_id = DeliveryId(next_id());
    row.job.event_id = EventId(next_id());
    row.job.job = name;
    row.job.queue = "work";
    row.job.timeout = timeout;
    row.job.timeout_limit = std::chrono::hours(24);
    row.job.retry_delays = {milliseconds(1000)};
    row.event = std::make_shared<const Event>();
    const auto id = row.job.delivery_id;
    rows_.emplace(id, std::move(row));
    changed_.notify_all();
    return id;
  }
  /// A job as a relay hands it to a broker: dispatched, and with nobody.
  Ticket add_handed_out(const std::string& name) {
    const auto id = add(name);
    const std::lock_guard lock(mutex_);
    auto& row = rows_.at(id);
    row.status = DeliveryStatus::dispatched;
    row.dispatch_id = DispatchId(next_id());
    row.handed_out = true;
    return {id, *row.dispatch_id, name, {}, false};
  }
  [[nodiscard]] Row row(DeliveryId id) {
    const std::lock_guard lock(mutex_);
    return rows_.at(id);
  }
  [[nodiscard]] std::size_t count(DeliveryStatus status) {
    const std::lock_guard lock(mutex_);
    std::size_t found = 0;
    for (const auto& [id, row] : rows_)
      found += row.status == status ? 1 : 0;
    return found;
  }
  void cancel(DeliveryId id) {
    const std::lock_guard lock(mutex_);
    rows_.at(id).job.cancel_requested = true;
  }
  /// As if its deadline had passed and another worker had it.
  void give_away(DeliveryId id) {
    const std::lock_guard lock(mutex_);
    rows_.at(id).dispatch_id = DispatchId(next_id());
  }
  void add_worker(const WorkerInfo& info) {
    const std::lock_guard lock(mutex_);
    workers_[info.id] = {info, 0};
  }
  [[nodiscard]] std::vector<WorkerRow> workers() {
    const std::lock_guard lock(mutex_);
    std::vector<WorkerRow> all;
    for (const auto& [id, worker] : workers_)
      all.push_back(worker);
    return all;
  }
  [[nodiscard]] std::size_t heartbeats() {
    std::size_t sum = 0;
    for (const auto& worker : workers())
      sum += worker.heartbeats;
    return sum;
  }
  [[nodiscard]] std::optional<WorkerState> state_of(WorkerId id) {
    const std::lock_guard lock(mutex_);
    const auto found = workers_.find(id);
    if (found == workers_.end()) return std::nullopt;
    return found->second.info.state;
  }

  std::atomic<bool> stuck = false;  ///< takes do not come back
  std::atomic<std::size_t> takes = 0;
  std::atomic<std::size_t> looks = 0;  ///< for what is lost
  std::atomic<std::size_t> schema_checks = 0;
  /// Of all calls, while it is set.
  void fail(std::optional<Error> failure) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
  }

 private:
  friend class TableJobStore;

  Uuid next_id() {
    std::array<std::uint8_t, 16> bytes{};
    const auto number = ++ids_;
    for (std::size_t i = 0; i < 8; ++i)
      bytes[15 - i] = static_cast<std::uint8_t>(number >> (8 * i));
    return Uuid(bytes);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t ids_ = 0;
  std::map<DeliveryId, Row> rows_;
  std::map<WorkerId, WorkerRow> workers_;
  std::optional<Error> failure_;
};

class TableJobStore final : public JobStore {
 public:
  explicit TableJobStore(JobTable& table) : table_(table) {}

  [[nodiscard]] JobStoreTraits traits() const override { return {"table", false, true}; }
  Result<void> check_schema(Deadline) override {
    const std::lock_guard lock(table_.mutex_);
    ++table_.schema_checks;
    if (table_.failure_) return *table_.failure_;
    return {};
  }

  Result<HeartbeatAnswer> heartbeat(const HeartbeatRequest& request, Deadline) override {
    const std::lock_guard lock(table_.mutex_);
    if (table_.failure_) return *table_.failure_;
    auto& worker = table_.workers_[request.worker.id];
    HeartbeatAnswer answer;
    answer.known = worker.info.state != WorkerState::dead;
    if (!answer.known) return answer;
    worker.info = request.worker;
    ++worker.heartbeats;
    for (const auto& dispatch : request.running) {
      const auto* const row = running(dispatch);
      if (row == nullptr) {
        answer.lost.push_back(dispatch);
      } else if (row->job.cancel_requested) {
        answer.cancelled.push_back(dispatch);
      }
    }
    return answer;
  }

  Result<void> declare_dead(WorkerId worker, std::optional<Timestamp>, Deadline) override {
    const std::lock_guard lock(table_.mutex_);
    table_.workers_.at(worker).info.state = WorkerState::dead;
    return {};
  }

  Result<std::vector<WorkerInfo>> workers_on(const std::string& host, Deadline) override {
    const std::lock_guard lock(table_.mutex_);
    std::vector<WorkerInfo> found;
    for (const auto& [id, worker] : table_.workers_)
      if (worker.info.host == host && worker.info.state == WorkerState::running)
        found.push_back(worker.info);
    return found;
  }

  Result<TaskBatch> take(const TakeRequest& request, Deadline) override {
    ++table_.takes;
    while (table_.stuck)
      std::this_thread::yield();
    const std::lock_guard lock(table_.mutex_);
    if (table_.failure_) return *table_.failure_;
    TaskBatch batch;
    for (auto& [id, row] : table_.rows_) {
      if (row.status != DeliveryStatus::pending) continue;
      batch.more = batch.tasks.size() == request.limit;
      if (batch.more) break;
      batch.tasks.push_back(dispatch(row));
    }
    return batch;
  }

  Result<StartAnswer> start(const StartRequest& request, Deadline) override {
    const std::lock_guard lock(table_.mutex_);
    if (table_.failure_) return *table_.failure_;
    auto* const row = running(request.dispatch_id);
    if (row == nullptr) return StartAnswer{};
    if (!std::exchange(row->handed_out, false)) {
      return StartAnswer{StartAnswer::Kind::taken, std::nullopt};
    }
    return StartAnswer{StartAnswer::Kind::started, task_of(*row)};
  }
  Result<TaskBatch> hand_out(const HandOutRequest&, Deadline) override { return TaskBatch{}; }

  Result<std::vector<RecordAnswer>> record(const RecordRequest& request, Deadline) override {
    const std::lock_guard lock(table_.mutex_);
    if (table_.failure_) return *table_.failure_;
    std::vector<RecordAnswer> answers;
    for (const auto& update : request.updates) {
      auto* const row = running(update.dispatch_id);
      answers.push_back(row == nullptr ? RecordAnswer::stale : RecordAnswer::recorded);
      if (row == nullptr) continue;
      // What waits for its retry is not taken again by this table.
      const bool waits =
          update.status == DeliveryStatus::pending && update.available_in > milliseconds(0);
      row->status = waits ? DeliveryStatus::held : update.status;
      row->last = update;
    }
    return answers;
  }

  Result<AttemptState> touch(const AttemptUpdate& update, Deadline) override {
    const std::lock_guard lock(table_.mutex_);
    if (table_.failure_) return *table_.failure_;
    auto* const row = running(update.dispatch_id);
    if (row == nullptr) return AttemptState{};
    if (update.percent) row->percent = *update.percent;
    if (update.checkpoint) row->checkpoint = *update.checkpoint;
    return AttemptState{true, row->job.cancel_requested, update.extend.value_or(row->job.timeout)};
  }

  Result<LostBatch> lost(const LostRequest&, Deadline) override {
    const std::lock_guard lock(table_.mutex_);
    ++table_.looks;
    if (table_.failure_) return *table_.failure_;
    return LostBatch{};
  }

  Result<void> await_work(const std::vector<std::string>&, Deadline deadline) override {
    std::unique_lock lock(table_.mutex_);
    if (table_.failure_) return *table_.failure_;
    if (!std::exchange(woken_, false)) table_.changed_.wait_for(lock, deadline.remaining());
    woken_ = false;
    return {};
  }
  void wake() noexcept override {
    const std::lock_guard lock(table_.mutex_);
    woken_ = true;
    table_.changed_.notify_all();
  }

 private:
  JobTable::Row* running(const DispatchId& dispatch) {
    for (auto& [id, row] : table_.rows_)
      if (row.status == DeliveryStatus::dispatched && row.dispatch_id == dispatch) return &row;
    return nullptr;
  }
  Task dispatch(JobTable::Row& row) {
    row.status = DeliveryStatus::dispatched;
    row.dispatch_id = DispatchId(table_.next_id());
    return task_of(row);
  }
  static Task task_of(const JobTable::Row& row) {
    Task task;
    task.job = row.job;
    task.dispatch_id = *row.dispatch_id;
    task.event = row.event;
    task.checkpoint = row.checkpoint;
    task.until_timeout = row.job.timeout;
    return task;
  }

  JobTable& table_;
  bool woken_ = false;
};

}  // namespace postrider::testing
