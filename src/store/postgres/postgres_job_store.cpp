#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include <postrider/job_store.hpp>
#include <postrider/store/postgres.hpp>

#include "store/common/attempt_check.hpp"
#include "store/common/headers_codec.hpp"
#include "store/postgres/postgres_connection.hpp"
#include "store/postgres/postgres_job_listener.hpp"
#include "store/postgres/postgres_job_record.hpp"
#include "store/postgres/postgres_job_rows.hpp"
#include "store/postgres/postgres_rows.hpp"
#include "store/postgres/postgres_schema.hpp"

namespace postrider {
namespace store::postgres {
namespace {

/// Of one take. The statements hold the number, too.
constexpr std::size_t most_tasks = 1000;
/// No caller asks for more; a bound for the parameter.
constexpr std::size_t most_lost = 1'000'000;
/// Takers that want one slot of a serial key at the same moment: one goes on, and the others look
/// again. Each look sees one slot more taken, so a few are enough; a caller may repeat the call.
constexpr int most_looks = 5;
constexpr std::string_view slot_is_taken = "23505";
constexpr std::string_view deadlock_detected = "40P01";

std::int64_t bounded(std::size_t count, std::size_t most) {
  return static_cast<std::int64_t>(std::min(count, most));
}

std::vector<std::string> queues_of(const TakeRequest& request) {
  std::vector<std::string> queues;
  for (const auto& share : request.queues)
    queues.push_back(share.queue);
  return queues;
}

Call turns_call(const TakeRequest& request) {
  Call call{"jobs_take_turns"};
  call.parameters.texts(queues_of(request));
  return call;
}

Call take_call(const TakeRequest& request, const std::vector<Uuid>& dispatches) {
  std::vector<std::int64_t> shares;
  for (const auto& share : request.queues)
    shares.push_back(bounded(share.at_most, most_tasks));
  Call call{"jobs_take"};
  call.parameters.time_if(request.now).uuid(request.worker.value());
  call.parameters.texts(queues_of(request)).integers(shares).integer(request.ageing.count());
  call.parameters.integer(bounded(request.limit, most_tasks)).uuids(dispatches);
  return call;
}

Call next_due_call(const TakeRequest& request) {
  Call call{"jobs_next_due"};
  call.parameters.time_if(request.now).texts(queues_of(request));
  return call;
}

TaskBatch read_batch(const Rows& rows, const Rows& next) {
  TaskBatch batch;
  batch.tasks.reserve(static_cast<std::size_t>(rows.size()));
  for (int row = 0; row < rows.size(); ++row)
    batch.tasks.push_back(read_task(rows, row));
  if (!next.is_null(0, 1)) batch.next_in = until(next.time(0, 1), next.time(0, 0));
  return batch;
}

/// Whether the caller's own limits were reached. A rate that was reached does not count: asking
/// again at once would be of no use.
bool reached_a_limit(const TaskBatch& batch, const TakeRequest& request) {
  if (batch.tasks.size() >= std::min(request.limit, most_tasks)) return true;
  return std::any_of(request.queues.begin(), request.queues.end(), [&](const auto& share) {
    const auto taken = std::count_if(batch.tasks.begin(), batch.tasks.end(), [&](const auto& task) {
      return task.job.queue == share.queue;
    });
    return share.at_most > 0 && taken >= bounded(share.at_most, most_tasks);
  });
}

Call start_call(const StartRequest& request) {
  Call call{"jobs_start"};
  call.parameters.time_if(request.now).uuid(request.worker.value());
  call.parameters.uuid(request.delivery_id.value()).uuid(request.dispatch_id.value());
  call.parameters.text(storable_text(request.job)).boolean(request.again);
  return call;
}

/// Why nothing was started.
StartAnswer::Kind judge_start(const Rows& rows, const StartRequest& request) {
  if (rows.empty() || rows.text(0, 1) != "dispatched" ||
      rows.uuid(0, 2) != request.dispatch_id.value()) {
    return StartAnswer::Kind::stale;
  }
  if (rows.text(0, 3) != request.job) return StartAnswer::Kind::wrong_job;
  return rows.is_null(0, 4) ? StartAnswer::Kind::worker_gone : StartAnswer::Kind::taken;
}

Call touch_call(const AttemptUpdate& update) {
  const bool only_asks = !update.extend && !update.percent && !update.note && !update.checkpoint;
  Call call{only_asks ? "jobs_attempt" : "jobs_touch"};
  auto& parameters = call.parameters;
  parameters.time_if(update.now);
  parameters.uuid(update.delivery_id.value()).uuid(update.dispatch_id.value());
  if (only_asks) return call;
  update.extend ? parameters.integer(update.extend->count()) : parameters.null();
  update.percent ? parameters.small_integer(*update.percent) : parameters.null();
  update.note ? parameters.text(storable_text(*update.note)) : parameters.null();
  parameters.text_if(update.checkpoint);
  return call;
}

Call beat_call(const HeartbeatRequest& request) {
  const auto& worker = request.worker;
  Call call{"workers_beat"};
  auto& parameters = call.parameters;
  parameters.time_if(request.now).uuid(worker.id.value());
  parameters.text(storable_text(worker.name)).text(storable_text(worker.host));
  parameters.integer(worker.pid).text(storable_text(worker.version)).texts(worker.queues);
  parameters.text(to_string(worker.state));
  return call;
}

/// What a worker believes to run, beside what its rows say.
HeartbeatAnswer compare_attempts(const std::vector<DispatchId>& running, const Rows& rows) {
  HeartbeatAnswer answer;
  std::unordered_set<DispatchId> there;
  std::unordered_set<DispatchId> cancelled;
  for (int row = 0; row < rows.size(); ++row) {
    const DispatchId dispatch(rows.uuid(row, 0));
    there.insert(dispatch);
    if (rows.boolean(row, 1)) cancelled.insert(dispatch);
  }
  for (const auto& dispatch : running) {
    if (!there.contains(dispatch)) answer.lost.push_back(dispatch);
    if (cancelled.contains(dispatch)) answer.cancelled.push_back(dispatch);
  }
  return answer;
}

/// Of the event, as much as hooks take from it; headers that cannot be read are none.
Event read_lost_event(const Rows& rows, int row) {
  int column = job_columns + 2;
  Event event;
  event.type = rows.text(row, column++);
  if (!rows.is_null(row, column)) {
    event.aggregate =
        Aggregate{std::string(rows.text(row, column)), std::string(rows.text(row, column + 1))};
  }
  if (auto headers = decode_headers(rows.text(row, column + 2))) {
    event.headers = std::move(headers).value();
  }
  return event;
}

LostAttempt read_lost(const Rows& rows, int row) {
  auto columns = read_job_columns(rows, row);
  if (!columns.hooks.empty()) set_hooks(columns, read_lost_event(rows, row));
  LostAttempt lost;
  lost.job = std::move(columns.job);
  lost.dispatch_id = columns.dispatch_id;
  if (const auto worker = rows.uuid_if(row, job_columns)) lost.worker = WorkerId(*worker);
  lost.worker_died = rows.boolean(row, job_columns + 1);
  return lost;
}

std::vector<WorkerInfo> read_workers(const Rows& rows) {
  std::vector<WorkerInfo> workers;
  for (int row = 0; row < rows.size(); ++row) {
    const WorkerId id(rows.uuid(row, 0));
    if (workers.empty() || workers.back().id != id) {
      workers.push_back({id,
                         std::string(rows.text(row, 1)),
                         std::string(rows.text(row, 2)),
                         rows.integer(row, 3),
                         std::string(rows.text(row, 4)),
                         {}});
      workers.back().state = parse_worker_state(rows.text(row, 5)).value_or(WorkerState::running);
    }
    if (!rows.is_null(row, 6)) workers.back().queues.emplace_back(rows.text(row, 6));
  }
  return workers;
}

class PostgresJobStore final : public JobStore {
 public:
  explicit PostgresJobStore(const PostgresOptions& options)
      : connection_(options, Use::relay), listener_(options) {}

  JobStoreTraits traits() const override { return {"postgres", true, true}; }

  Result<void> check_schema(Deadline deadline) override {
    return compare_schema(connection_, deadline);
  }

  Result<HeartbeatAnswer> heartbeat(const HeartbeatRequest& request, Deadline deadline) override {
    std::vector<Call> calls = {beat_call(request)};
    if (!request.running.empty()) {
      calls.push_back({"jobs_running"});
      calls.back().parameters.uuid(request.worker.id.value());
    }
    const auto results = connection_.write(calls, deadline);
    if (!results) return results.error();
    HeartbeatAnswer answer;
    if (!request.running.empty()) answer = compare_attempts(request.running, results->at(1));
    answer.known = !results->at(0).empty();
    return answer;
  }

  Result<void> declare_dead(WorkerId worker, std::optional<Timestamp> /*now*/,
                            Deadline deadline) override {
    Call call{"workers_declare_dead"};
    call.parameters.uuid(worker.value());
    const auto declared = connection_.write(std::vector<Call>{std::move(call)}, deadline);
    if (!declared) return declared.error();
    return {};
  }

  Result<std::vector<WorkerInfo>> workers_on(const std::string& host, Deadline deadline) override {
    Call call{"workers_on_host"};
    call.parameters.text(storable_text(host));
    const auto results = connection_.read(std::vector<Call>{std::move(call)}, deadline);
    if (!results) return results.error();
    return read_workers(results->at(0));
  }

  Result<TaskBatch> take(const TakeRequest& request, Deadline deadline) override {
    if (!doubtful_.empty() && doubtful_taker_ == request.worker) {
      auto found = find_taken(request, deadline);
      if (!found || !found->tasks.empty()) return found;
    }
    std::vector<Uuid> dispatches;
    for (auto left = bounded(request.limit, most_tasks); left > 0; --left)
      dispatches.push_back(ids_.next());
    const std::vector<Call> calls = {turns_call(request), take_call(request, dispatches),
                                     next_due_call(request)};
    const auto results = write_slots(calls, deadline);
    if (!results) {
      if (results.error().disposition == Disposition::in_doubt) {
        doubtful_ = std::move(dispatches);
        doubtful_taker_ = request.worker;
      }
      return results.error();
    }
    auto batch = read_batch(results->at(1), results->at(2));
    batch.more = reached_a_limit(batch, request);
    return batch;
  }

  Result<StartAnswer> start(const StartRequest& request, Deadline deadline) override {
    std::vector<Call> calls = {start_call(request), {"jobs_get"}};
    calls.back().parameters.uuids(std::vector<Uuid>{request.delivery_id.value()});
    const auto results = connection_.write(calls, deadline);
    if (!results) return results.error();
    StartAnswer answer;
    if (results->at(0).empty()) {
      answer.kind = judge_start(results->at(1), request);
    } else {
      answer.kind = StartAnswer::Kind::started;
      answer.task = read_task(results->at(0), 0);
    }
    return answer;
  }

  Result<TaskBatch> hand_out(const HandOutRequest& request, Deadline deadline) override {
    std::vector<Call> calls = {{"jobs_hand_out"}, {"jobs_next_hand_out"}};
    for (auto& call : calls)
      call.parameters.time_if(request.now).texts(request.routes);
    calls[0].parameters.integer(bounded(request.limit, most_tasks));
    const auto results = write_slots(calls, deadline);
    if (!results) return results.error();
    auto batch = read_batch(results->at(0), results->at(1));
    batch.more = batch.tasks.size() >= std::min(request.limit, most_tasks);
    return batch;
  }

  Result<std::vector<RecordAnswer>> record(const RecordRequest& request,
                                           Deadline deadline) override {
    // A taker with an old snapshot locks rows that run by now, until its end, and may wait for a
    // slot that this call is about to free: then one of the two is ended.
    for (int tries = 1;; ++tries) {
      auto answers = record_ends(connection_, ids_, request, deadline);
      if (answers || tries == most_looks) return answers;
      if (answers.error().native_code != deadlock_detected) return answers;
    }
  }

  Result<AttemptState> touch(const AttemptUpdate& update, Deadline deadline) override {
    if (auto checked = check_attempt(update, traits().name); !checked) return checked.error();
    const auto results = connection_.write(std::vector<Call>{touch_call(update)}, deadline);
    if (!results) return results.error();
    const auto& rows = results->at(0);
    if (rows.empty()) return AttemptState();
    return AttemptState{true, rows.boolean(0, 0), until(rows.time(0, 1), rows.time(0, 2))};
  }

  Result<LostBatch> lost(const LostRequest& request, Deadline deadline) override {
    const auto limit = std::clamp<std::size_t>(request.limit, 1, most_lost);
    std::vector<Call> calls = {{"workers_expire"}, {"jobs_lost"}};
    calls[0].parameters.time_if(request.now).integer(request.dead_after.count());
    // One more than fits tells whether there is more.
    calls[1].parameters.time_if(request.now).integer(static_cast<std::int64_t>(limit) + 1);
    const auto results = connection_.write(calls, deadline);
    if (!results) return results.error();
    LostBatch batch;
    for (const auto& worker : uuids_in(results->at(0), 0))
      batch.died.emplace_back(worker);
    const auto& rows = results->at(1);
    batch.more = static_cast<std::size_t>(rows.size()) > limit;
    for (int row = 0; row < rows.size() && batch.attempts.size() < limit; ++row)
      batch.attempts.push_back(read_lost(rows, row));
    return batch;
  }

  Result<void> await_work(const std::vector<std::string>& queues, Deadline deadline) override {
    return listener_.await(queues, deadline);
  }

  void wake() noexcept override { listener_.wake(); }

 private:
  /// Of a take whose COMMIT was not answered: its jobs, if it was committed, would otherwise wait
  /// for their deadlines with a worker that does not know them.
  Result<TaskBatch> find_taken(const TakeRequest& request, Deadline deadline) {
    Call call{"jobs_taken"};
    call.parameters.time_if(request.now).uuid(request.worker.value()).uuids(doubtful_);
    const auto results = connection_.read(std::vector<Call>{std::move(call)}, deadline);
    if (!results) return results.error();
    doubtful_.clear();
    TaskBatch batch;
    const auto& rows = results->at(0);
    for (int row = 0; row < rows.size(); ++row)
      batch.tasks.push_back(read_task(rows, row));
    batch.more = true;
    return batch;
  }

  Result<std::vector<Rows>> write_slots(const std::vector<Call>& calls, Deadline deadline) {
    for (int looks = 1;; ++looks) {
      auto results = connection_.write(calls, deadline);
      if (results || looks == most_looks) return results;
      const auto& code = results.error().native_code;
      if (code != slot_is_taken && code != deadlock_detected) return results;
    }
  }

  PostgresConnection connection_;
  PostgresJobListener listener_;
  std::unique_ptr<Random> random_ = system_random();
  IdGenerator ids_{system_clock(), *random_};
  std::vector<Uuid> doubtful_;  // dispatches that a take may have made
  WorkerId doubtful_taker_;
};

}  // namespace
}  // namespace store::postgres

std::unique_ptr<JobStore> make_postgres_job_store(PostgresOptions options) {
  return std::make_unique<store::postgres::PostgresJobStore>(options);
}

}  // namespace postrider
