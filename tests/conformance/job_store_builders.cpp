#include "conformance/job_store_builders.hpp"

#include <algorithm>
#include <ostream>
#include <utility>

#include "conformance/skip_list.hpp"

namespace postrider::testing {
namespace {

NewEvent event_of_a_job() {
  NewEvent event;
  event.id = EventId(fresh_uuid());
  event.type = "order.placed";
  event.payload = "{}";
  return event;
}

NewDelivery job_of(const EventId& event) {
  NewDelivery delivery;
  delivery.id = DeliveryId(fresh_uuid());
  delivery.event_id = event;
  delivery.route = "mailing";
  delivery.on_failed = OnFailed::skip;
  delivery.retry_delays = {std::chrono::seconds(1), std::chrono::seconds(5)};
  delivery.timeout = std::chrono::seconds(10);
  delivery.job.emplace();
  delivery.job->policy.job = "send";
  delivery.job->policy.queue = "mail";
  delivery.job->policy.timeout_limit = std::chrono::seconds(60);
  return delivery;
}

}  // namespace

void JobStoreConformance::SetUp() {
  harness_ = GetParam().make();
  if (IsSkipped()) return;  // by a harness whose server is not there
  ASSERT_NE(harness_, nullptr);
  store_ = harness_->open_store();
  jobs_ = harness_->open_job_store();
  ASSERT_NE(jobs_, nullptr);
}

void JobStoreConformance::TearDown() {
  // Without a harness its server is missing; that is no decision of the backend.
  if (harness_ != nullptr) expect_known_skip(GetParam().name);
  jobs_.reset();
  store_.reset();
  harness_.reset();
}

std::string job_case_name(const ::testing::TestParamInfo<JobStoreCase>& info) {
  return info.param.name;
}

void PrintTo(const JobStoreCase& store_case, std::ostream* out) {
  *out << store_case.name;
}

std::optional<DeliveryId> JobStoreConformance::try_plant(const JobChange& change) {
  const auto event = event_of_a_job();
  auto job = job_of(*event.id);
  if (change) change(job);
  value_of(store_->add(std::vector{event}, soon()));
  if (!harness_->plant_job(job, now())) return std::nullopt;
  return job.id;
}

DeliveryId JobStoreConformance::plant(const JobChange& change) {
  const auto planted = try_plant(change);
  if (!planted) ADD_FAILURE() << "the job was refused";
  return planted.value_or(DeliveryId());
}

std::vector<DeliveryId> JobStoreConformance::plant_many(std::size_t count,
                                                        const JobChange& change) {
  std::vector<DeliveryId> ids;
  for (std::size_t i = 0; i < count; ++i)
    ids.push_back(plant(change));
  return ids;
}

WorkerId JobStoreConformance::start_worker(const std::string& host) {
  HeartbeatRequest request;
  request.worker = {WorkerId(fresh_uuid()), "worker", host, 4711, "1.0", {"mail"}};
  request.now = now();
  EXPECT_TRUE(value_of(jobs_->heartbeat(request, soon())).known);
  return request.worker.id;
}

HeartbeatAnswer JobStoreConformance::beat(WorkerId worker, std::vector<DispatchId> running,
                                          WorkerState state) {
  HeartbeatRequest request;
  request.worker = {worker, "worker", "host-1", 4711, "1.0", {"mail"}, state};
  request.running = std::move(running);
  request.now = now();
  return value_of(jobs_->heartbeat(request, soon()));
}

TakeRequest JobStoreConformance::take_request(std::size_t at_most) {
  if (!worker_) worker_ = start_worker();
  TakeRequest request;
  request.worker = *worker_;
  request.queues = {{"mail", at_most}};
  request.limit = at_most;
  request.now = now();
  return request;
}

TaskBatch JobStoreConformance::take(const TakeRequest& request) {
  return value_of(jobs_->take(request, soon()));
}

TaskBatch JobStoreConformance::take(std::size_t at_most) {
  return take(take_request(at_most));
}

TaskBatch JobStoreConformance::take_for(WorkerId worker, std::size_t at_most) {
  auto request = take_request(at_most);
  request.worker = worker;
  return take(request);
}

Task JobStoreConformance::take_one() {
  auto batch = take();
  EXPECT_EQ(batch.tasks.size(), 1U);
  return batch.tasks.empty() ? Task() : std::move(batch.tasks.front());
}

std::vector<RecordAnswer> JobStoreConformance::record_all(std::vector<JobUpdate> updates) {
  RecordRequest request;
  request.updates = std::move(updates);
  request.now = now();
  return value_of(jobs_->record(request, soon()));
}

RecordAnswer JobStoreConformance::record(const JobUpdate& update) {
  const auto answers = record_all({update});
  EXPECT_EQ(answers.size(), 1U);
  return answers.empty() ? RecordAnswer::stale : answers.front();
}

AttemptState JobStoreConformance::touch(AttemptUpdate update) {
  update.now = now();
  return value_of(jobs_->touch(update, soon()));
}

LostBatch JobStoreConformance::lost(std::size_t limit) {
  return value_of(jobs_->lost({dead_after, limit, now()}, soon()));
}

JobChange with(std::initializer_list<JobChange> changes) {
  return [changes = std::vector<JobChange>(changes)](NewDelivery& job) {
    for (const auto& change : changes)
      change(job);
  };
}

JobChange delayed(milliseconds wait) {
  return [wait](NewDelivery& job) { job.available_in = wait; };
}

JobChange in_queue(std::string queue) {
  return [queue = std::move(queue)](NewDelivery& job) { job.job->policy.queue = queue; };
}

JobChange with_priority(int priority) {
  return [priority](NewDelivery& job) { job.job->policy.priority = priority; };
}

JobChange serial(std::string key, int limit) {
  return [key = std::move(key), limit](NewDelivery& job) {
    job.job->policy.serial_key = key;
    job.job->policy.serial_limit = limit;
  };
}

JobChange unique(std::string key) {
  return [key = std::move(key)](NewDelivery& job) { job.job->policy.unique_key = key; };
}

JobChange over_broker(std::string route) {
  return [route = std::move(route)](NewDelivery& job) {
    job.route = route;
    job.job->transport = JobTransport::broker;
  };
}

JobUpdate ended(const Task& task, DeliveryStatus status, std::string result) {
  JobUpdate update;
  update.delivery_id = task.job.delivery_id;
  update.dispatch_id = task.dispatch_id;
  update.status = status;
  update.attempts = task.job.attempts;
  update.deaths = task.job.deaths;
  update.snoozes = task.job.snoozes;
  update.interruptions = task.job.interruptions;
  update.result = std::move(result);
  return update;
}

JobUpdate completed(const Task& task) {
  return ended(task, DeliveryStatus::completed, "done");
}

JobUpdate failed(const Task& task, std::string code) {
  auto update = ended(task, DeliveryStatus::failed, "fail");
  update.attempts = task.job.attempts + 1;
  update.failure_code = std::move(code);
  return update;
}

JobUpdate cancelled(const Task& task) {
  return ended(task, DeliveryStatus::cancelled, "cancelled");
}

JobUpdate retried(const Task& task, milliseconds delay) {
  auto update = ended(task, DeliveryStatus::pending, "retry");
  update.attempts = task.job.attempts + 1;
  update.available_in = delay;
  update.failure_code = "card_server_down";
  return update;
}

AttemptUpdate attempt_of(const Task& task) {
  AttemptUpdate update;
  update.delivery_id = task.job.delivery_id;
  update.dispatch_id = task.dispatch_id;
  return update;
}

std::vector<DeliveryId> ids_of(const TaskBatch& batch) {
  std::vector<DeliveryId> ids;
  for (const auto& task : batch.tasks)
    ids.push_back(task.job.delivery_id);
  return ids;
}

std::vector<DeliveryId> ids_of(const LostBatch& batch) {
  std::vector<DeliveryId> ids;
  for (const auto& attempt : batch.attempts)
    ids.push_back(attempt.job.delivery_id);
  return ids;
}

std::vector<DispatchId> dispatches_of(const TaskBatch& batch) {
  std::vector<DispatchId> ids;
  for (const auto& task : batch.tasks)
    ids.push_back(task.dispatch_id);
  return ids;
}

std::vector<DeliveryId> sorted(std::vector<DeliveryId> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace postrider::testing
