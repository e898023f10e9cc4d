// What `JobOperations` promises to people: true counts, and changes of which exactly one wins.

#include "conformance/job_operations.hpp"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>

#include <postrider/diagnosis.hpp>

#include "conformance/store_builders.hpp"

namespace postrider {

inline void PrintTo(const JobAnswer& answer, std::ostream* out) {
  *out << to_string(answer.kind);
  if (answer.status) *out << " " << to_string(*answer.status);
}

}  // namespace postrider

namespace postrider::testing {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace {

using Kind = JobAnswer::Kind;

const Operator ann{"ann", "the customer asked"};
const JobAnswer is_cancelled{Kind::changed, DeliveryStatus::cancelled};
const JobAnswer is_requested{Kind::requested, DeliveryStatus::dispatched};

JobAnswer refused(DeliveryStatus status) {
  return {Kind::refused, status};
}

AuditedJobChange by_ann(std::string action) {
  return {std::move(action), ann.name, ann.reason};
}

DueTime in(milliseconds wait) {
  return {std::nullopt, wait};
}

std::vector<DeliveryId> ids_of(const std::vector<Task>& tasks) {
  std::vector<DeliveryId> ids;
  for (const auto& task : tasks)
    ids.push_back(task.job.delivery_id);
  return ids;
}

std::vector<DeliveryId> ids_of(const JobPage& page) {
  std::vector<DeliveryId> ids;
  for (const auto& job : page.jobs)
    ids.push_back(job.delivery.id);
  return ids;
}

}  // namespace

void JobOperationsConformance::SetUp() {
  harness_ = GetParam().make();
  if (IsSkipped()) return;  // by a harness whose server is not there
  ASSERT_NE(harness_, nullptr);
  jobs_ = harness_->open_job_store();
  operations_ = harness_->open_job_operations();
}

void JobOperationsConformance::TearDown() {
  jobs_.reset();
  operations_.reset();
  harness_.reset();
}

EnqueueRequest JobOperationsConformance::request(const RequestChange& change) {
  EnqueueRequest request;
  request.event.type = "order.placed";
  request.event.payload = "{}";
  request.policy.job = "ship";
  request.policy.queue = "shipping";
  request.retry_delays = {seconds(1), seconds(5)};
  request.timeout = seconds(10);
  if (change) change(request);
  return request;
}

Result<EnqueueAnswer> JobOperationsConformance::try_enqueue(const EnqueueRequest& request) {
  return operations_->enqueue(request, ann, now(), soon());
}

DeliveryId JobOperationsConformance::enqueue(const RequestChange& change) {
  const auto answer = value_of(try_enqueue(request(change)));
  EXPECT_TRUE(answer.inserted);
  return answer.delivery_id;
}

WorkerId JobOperationsConformance::start_worker() {
  worker_ = {};
  worker_.id = WorkerId(fresh_uuid());
  worker_.name = "packer";
  worker_.host = "host-1/boot-1";
  worker_.pid = 4711;
  worker_.version = "1.2.3";
  worker_.queues = {"mail", "shipping"};
  beat(WorkerState::running);
  return worker_.id;
}

HeartbeatAnswer JobOperationsConformance::beat(WorkerState state,
                                               const std::vector<DispatchId>& running) {
  HeartbeatRequest request;
  request.worker = worker_;
  request.worker.state = state;
  request.running = running;
  request.now = now();
  return value_of(jobs_->heartbeat(request, soon()));
}

std::vector<Task> JobOperationsConformance::take(std::size_t at_most, const std::string& queue) {
  if (worker_.name.empty()) start_worker();
  TakeRequest request;
  request.worker = worker_.id;
  request.queues = {{queue, at_most}};
  request.limit = at_most;
  request.now = now();
  return value_of(jobs_->take(request, soon())).tasks;
}

Task JobOperationsConformance::take_one() {
  auto tasks = take(1);
  EXPECT_THAT(tasks, SizeIs(1));
  return tasks.empty() ? Task{} : std::move(tasks.front());
}

RecordAnswer JobOperationsConformance::record(const Task& task, DeliveryStatus status,
                                              const std::function<void(JobUpdate&)>& change) {
  JobUpdate update;
  update.delivery_id = task.job.delivery_id;
  update.dispatch_id = task.dispatch_id;
  update.status = status;
  update.attempts = task.job.attempts;
  update.deaths = task.job.deaths;
  update.snoozes = task.job.snoozes;
  update.interruptions = task.job.interruptions;
  update.result = to_string(status);
  if (change) change(update);
  const auto answers = value_of(jobs_->record({{update}, now()}, soon()));
  EXPECT_THAT(answers, SizeIs(1));
  return answers.empty() ? RecordAnswer::stale : answers.front();
}

JobAnswer JobOperationsConformance::cancel(const DeliveryId& id) {
  return value_of(operations_->cancel(id, ann, now(), soon()));
}

JobAnswer JobOperationsConformance::reschedule(const DeliveryId& id, const DueTime& due) {
  return value_of(operations_->reschedule(id, due, ann, now(), soon()));
}

JobDetail JobOperationsConformance::show(const DeliveryId& id) {
  const auto job = value_of(operations_->job(id, soon()));
  EXPECT_TRUE(job.has_value());
  return job.value_or(JobDetail{});
}

JobCounts JobOperationsConformance::counts(const std::string& job) {
  for (auto& counts : value_of(operations_->status(now(), soon())).jobs) {
    if (counts.job == job) return counts;
  }
  ADD_FAILURE() << "no counts for the job " << job;
  return {};
}

std::int64_t JobOperationsConformance::events() {
  return value_of(harness_->open_operations()->status(now(), soon())).events.total;
}

TEST_P(JobOperationsConformance, An_enqueued_job_is_taken_with_its_event) {
  const std::string payload("a\0\xff", 3);
  const auto id = enqueue([&](auto& request) {
    request.event.payload = payload;
    request.event.headers = {{"tenant", "a"}};
    request.event.aggregate = Aggregate{"order", "17"};
  });

  const auto task = take_one();

  EXPECT_EQ(task.job.delivery_id, id);
  EXPECT_EQ(task.job.route, enqueue_route);
  EXPECT_EQ(task.job.job, "ship");
  EXPECT_EQ(task.job.queue, "shipping");
  EXPECT_THAT(task.job.retry_delays, ElementsAre(seconds(1), seconds(5)));
  EXPECT_EQ(task.job.timeout, seconds(10));
  ASSERT_NE(task.event, nullptr);
  EXPECT_EQ(task.event->payload, payload);
  EXPECT_EQ(task.event->headers, (Headers{{"tenant", "a"}}));
  EXPECT_EQ(task.event->aggregate, (Aggregate{"order", "17"}));
  EXPECT_THAT(harness_->audit(), ElementsAre(by_ann("job_enqueue")));
}

TEST_P(JobOperationsConformance, No_relay_reads_the_event_of_an_enqueued_job) {
  enqueue();
  const auto store = harness_->open_store();
  ClaimRequest claim;
  for (std::int32_t i = 0; i < store->traits().partitions; ++i)
    claim.partitions.emplace_back(i);
  claim.limit = 100;
  claim.bytes = 1U << 20U;
  claim.now = now();

  EXPECT_THAT(value_of(store->claim(claim, soon())).events, IsEmpty());
}

TEST_P(JobOperationsConformance, A_scheduled_job_waits_for_its_time) {
  const auto id = enqueue([](auto& request) { request.due = in(hours(1)); });
  const auto at = enqueue([&](auto& request) { request.due.at = now() + hours(2); });
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(counts().delayed, 2);

  clock_.advance(hours(1));
  EXPECT_THAT(ids_of(take()), ElementsAre(id));
  clock_.advance(hours(1));
  EXPECT_THAT(ids_of(take()), ElementsAre(at));
}

TEST_P(JobOperationsConformance, The_policy_stands_on_the_row_as_it_was_given) {
  const auto id = enqueue([](auto& request) {
    request.event.aggregate = Aggregate{"order", "17"};
    request.policy.priority = -7;
    request.policy.serial_key = "customer {1}";
    request.policy.serial_limit = 3;
    request.policy.unique_key = "invoice 4";
    request.policy.on_worker_death = OnWorkerDeath::retry;
    request.policy.max_deaths = 5;
    request.policy.timeout_limit = hours(3);
  });

  const auto job = show(id);

  EXPECT_EQ(job.delivery.route, enqueue_route);
  EXPECT_EQ(job.delivery.status, DeliveryStatus::pending);
  EXPECT_EQ(job.delivery.available_at, now());
  EXPECT_EQ(job.delivery.timeout, seconds(10));
  EXPECT_EQ(job.transport, JobTransport::database);
  EXPECT_EQ(job.priority, -7);
  EXPECT_EQ(job.serial_key, "customer {1}");
  EXPECT_EQ(job.serial_limit, 3);
  EXPECT_EQ(job.unique_key, "invoice 4");
  EXPECT_EQ(job.on_worker_death, OnWorkerDeath::retry);
  EXPECT_EQ(job.max_deaths, 5);
  EXPECT_EQ(job.timeout_limit, hours(3));
  EXPECT_EQ(job.event_type, "order.placed");
  EXPECT_EQ(job.aggregate, (Aggregate{"order", "17"}));
  EXPECT_EQ(job.worker, std::nullopt);
  EXPECT_EQ(job.percent, std::nullopt);
}

TEST_P(JobOperationsConformance, JT_22_a_unique_job_is_accepted_again_once_the_first_has_ended) {
  const auto unique = request([](auto& request) { request.policy.unique_key = "invoice 4"; });
  const auto first = value_of(try_enqueue(unique));
  const auto second = value_of(try_enqueue(unique));

  EXPECT_TRUE(first.inserted);
  EXPECT_FALSE(second.inserted);
  EXPECT_EQ(second.delivery_id, first.delivery_id);
  EXPECT_EQ(second.event_id, first.event_id);
  EXPECT_EQ(events(), 1) << "nothing was written for the second";
  EXPECT_THAT(harness_->audit(), SizeIs(1));

  const auto task = take_one();
  EXPECT_FALSE(value_of(try_enqueue(unique)).inserted) << "it runs";
  record(task, DeliveryStatus::completed);
  EXPECT_TRUE(value_of(try_enqueue(unique)).inserted);
}

TEST_P(JobOperationsConformance, A_unique_key_is_of_one_job_name) {
  const auto with_key = [](const std::string& job) {
    return request([&](auto& request) {
      request.policy.job = job;
      request.policy.unique_key = "invoice 4";
    });
  };

  EXPECT_TRUE(value_of(try_enqueue(with_key("ship"))).inserted);
  EXPECT_TRUE(value_of(try_enqueue(with_key("bill"))).inserted);
}

TEST_P(JobOperationsConformance, Of_many_who_enqueue_one_unique_job_at_once_one_inserts_it) {
  constexpr int people = 4;
  std::atomic<int> inserted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < people; ++i) {
    threads.emplace_back([&] {
      const auto operations = harness_->open_job_operations();
      const auto unique = request([](auto& request) { request.policy.unique_key = "invoice 4"; });
      const auto answer = value_of(operations->enqueue(unique, ann, now(), soon()));
      inserted += answer.inserted ? 1 : 0;
    });
  }
  for (auto& thread : threads)
    thread.join();

  EXPECT_EQ(inserted, 1);
  EXPECT_EQ(counts().due, 1);
}

TEST_P(JobOperationsConformance, What_cannot_be_a_job_is_refused_with_its_reason) {
  struct Row {
    std::string reason;
    RequestChange change;
  };
  const std::vector<Row> rows = {
      {"the job ''", [](auto& request) { request.policy.job = ""; }},
      {"the job 'a b'", [](auto& request) { request.policy.job = "a b"; }},
      {"the queue ''", [](auto& request) { request.policy.queue = ""; }},
      {"the queue 'Mail'", [](auto& request) { request.policy.queue = "Mail"; }},
      {"type is empty", [](auto& request) { request.event.type = ""; }},
      {"available_at", [&](auto& request) { request.event.available_at = now(); }},
      {"retry_delays", [](auto& request) { request.retry_delays = {milliseconds(0)}; }},
      {"retry_delays", [](auto& request) { request.retry_delays = {milliseconds(-1)}; }},
      {"timeout", [](auto& request) { request.timeout = milliseconds(0); }},
      {"timeout_limit", [](auto& request) { request.policy.timeout_limit = milliseconds(1); }},
      {"priority", [](auto& request) { request.policy.priority = 101; }},
      {"max_deaths", [](auto& request) { request.policy.max_deaths = -1; }},
      {"serial_limit", [](auto& request) { request.policy.serial_limit = 2; }},
      {"serial_key", [](auto& request) { request.policy.serial_key = std::string(256, 'x'); }},
      {"unique_key", [](auto& request) { request.policy.unique_key = std::string(256, 'x'); }},
      {"unique_key", [](auto& request) { request.policy.unique_key = "a\nb"; }},
      {"unique_key", [](auto& request) { request.policy.unique_key = "half \xc3"; }},
      {"the due time", [](auto& request) { request.due = in(milliseconds(-1)); }},
  };
  for (const auto& row : rows) {
    const auto answer = try_enqueue(request(row.change));
    ASSERT_FALSE(answer.ok()) << row.reason;
    EXPECT_EQ(answer.error().disposition, Disposition::reject) << row.reason;
    EXPECT_THAT(answer.error().message, HasSubstr(row.reason));
  }
  EXPECT_EQ(events(), 0);
  EXPECT_THAT(harness_->audit(), IsEmpty());
}

TEST_P(JobOperationsConformance, An_event_id_that_is_taken_enqueues_nothing) {
  const auto taken = request([](auto& request) { request.event.id = EventId(fresh_uuid()); });
  ASSERT_TRUE(try_enqueue(taken).ok());

  const auto answer = try_enqueue(taken);

  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::already_exists);
  EXPECT_EQ(counts().due, 1);
  enqueue();  // and what comes after is not disturbed
}

TEST_P(JobOperationsConformance, A_waiting_job_is_cancelled_at_once) {
  const auto id = enqueue();

  EXPECT_EQ(cancel(id), is_cancelled);

  EXPECT_THAT(take(), IsEmpty());
  const auto job = show(id);
  EXPECT_EQ(job.delivery.status, DeliveryStatus::cancelled);
  EXPECT_EQ(job.delivery.finished_at, now());
  EXPECT_EQ(job.delivery.failure_code, job_code::cancelled);
  EXPECT_EQ(cancel(id), refused(DeliveryStatus::cancelled)) << "it has ended already";
  EXPECT_THAT(harness_->audit(), ElementsAre(by_ann("job_enqueue"), by_ann("job_cancel")));
}

TEST_P(JobOperationsConformance, A_cancelled_job_makes_room_for_the_next_of_its_keys) {
  const auto serial = [](auto& request) {
    request.policy.serial_key = "customer 1";
    request.policy.unique_key = "invoice 4";
  };
  cancel(enqueue(serial));
  const auto next = enqueue(serial);

  EXPECT_THAT(ids_of(take()), ElementsAre(next));
}

TEST_P(JobOperationsConformance, JT_18_the_worker_of_a_running_job_is_asked_to_stop_it) {
  const auto id = enqueue();
  const auto task = take_one();
  EXPECT_THAT(beat(WorkerState::running, {task.dispatch_id}).cancelled, IsEmpty());

  EXPECT_EQ(cancel(id), is_requested);
  EXPECT_EQ(cancel(id), is_requested) << "asked twice is asked once";

  EXPECT_EQ(show(id).cancel_requested_at, now());
  EXPECT_EQ(show(id).delivery.status, DeliveryStatus::dispatched);
  EXPECT_THAT(beat(WorkerState::running, {task.dispatch_id}).cancelled,
              ElementsAre(task.dispatch_id));
  EXPECT_EQ(record(task, DeliveryStatus::cancelled), RecordAnswer::recorded);
  EXPECT_EQ(counts().cancelled, 1);
  EXPECT_THAT(harness_->audit(), ElementsAre(by_ann("job_enqueue"), by_ann("job_cancel")));
}

TEST_P(JobOperationsConformance, JT_07_a_job_between_two_attempts_can_be_cancelled) {
  const auto id = enqueue();
  record(take_one(), DeliveryStatus::pending, [](auto& update) {
    update.attempts = 1;
    update.deaths = 1;
    update.available_in = seconds(1);
  });

  EXPECT_EQ(cancel(id), is_cancelled);

  clock_.advance(hours(1));
  EXPECT_THAT(take(), IsEmpty());
}

TEST_P(JobOperationsConformance, F136_a_completion_that_came_first_stays) {
  const auto id = enqueue();
  EXPECT_EQ(record(take_one(), DeliveryStatus::completed), RecordAnswer::recorded);

  EXPECT_EQ(cancel(id), refused(DeliveryStatus::completed));

  EXPECT_EQ(show(id).delivery.status, DeliveryStatus::completed);
  EXPECT_THAT(harness_->audit(), ElementsAre(by_ann("job_enqueue")));
}

TEST_P(JobOperationsConformance, F136_a_job_that_finishes_in_spite_of_the_request_is_completed) {
  const auto id = enqueue();
  const auto task = take_one();
  EXPECT_EQ(cancel(id), is_requested);

  EXPECT_EQ(record(task, DeliveryStatus::completed), RecordAnswer::recorded);

  EXPECT_EQ(cancel(id), refused(DeliveryStatus::completed));
}

TEST_P(JobOperationsConformance, F136_of_a_cancel_and_an_end_that_meet_exactly_one_wins) {
  constexpr int meetings = 20;
  for (int i = 0; i < meetings; ++i) {
    const auto id = enqueue();
    const auto task = take_one();
    JobAnswer told;
    std::thread person([&, operations = harness_->open_job_operations()] {
      told = value_of(operations->cancel(id, ann, now(), soon()));
    });
    const auto recorded =
        record(task, DeliveryStatus::pending, [](auto& update) { update.attempts = 1; });
    person.join();

    // Either the row was waiting again, and the cancel ended it; or the request came first, and the
    // attempt may end but not wait.
    if (told == is_cancelled) {
      EXPECT_EQ(recorded, RecordAnswer::recorded);
    } else {
      EXPECT_EQ(told, is_requested);
      EXPECT_EQ(recorded, RecordAnswer::cancel_requested);
      EXPECT_EQ(record(task, DeliveryStatus::cancelled), RecordAnswer::recorded);
    }
    EXPECT_EQ(show(id).delivery.status, DeliveryStatus::cancelled);
    EXPECT_THAT(take(), IsEmpty());
  }
}

TEST_P(JobOperationsConformance, F136_of_a_cancel_and_a_take_that_meet_exactly_one_wins) {
  constexpr int meetings = 20;
  start_worker();
  for (int i = 0; i < meetings; ++i) {
    const auto id = enqueue();
    JobAnswer told;
    std::thread person([&, operations = harness_->open_job_operations()] {
      told = value_of(operations->cancel(id, ann, now(), soon()));
    });
    const auto tasks = take();
    person.join();

    if (tasks.empty()) {
      EXPECT_EQ(told, is_cancelled);
    } else {
      EXPECT_EQ(told, is_requested) << "it was taken, so it was not ended under the worker's hands";
      record(tasks.front(), DeliveryStatus::cancelled);
    }
  }
}

TEST_P(JobOperationsConformance, The_due_time_of_a_waiting_job_moves_both_ways) {
  const auto id = enqueue();

  EXPECT_EQ(reschedule(id, in(hours(2))), (JobAnswer{Kind::changed, DeliveryStatus::pending}));
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(reschedule(id, DueTime{now() - hours(1), {}}).kind, Kind::changed);
  EXPECT_THAT(ids_of(take()), ElementsAre(id));

  EXPECT_THAT(harness_->audit(), ElementsAre(by_ann("job_enqueue"), by_ann("job_reschedule"),
                                             by_ann("job_reschedule")));
}

TEST_P(JobOperationsConformance, What_does_not_wait_cannot_be_moved) {
  const auto id = enqueue();
  const auto task = take_one();
  EXPECT_EQ(reschedule(id, in(hours(1))), refused(DeliveryStatus::dispatched));
  record(task, DeliveryStatus::completed);
  EXPECT_EQ(reschedule(id, in(hours(1))), refused(DeliveryStatus::completed));

  EXPECT_FALSE(operations_->reschedule(id, in(milliseconds(-1)), ann, now(), soon()).ok());
  EXPECT_THAT(harness_->audit(), ElementsAre(by_ann("job_enqueue")));
}

TEST_P(JobOperationsConformance, Of_a_job_that_is_not_there_nothing_is_said) {
  const DeliveryId nobody(fresh_uuid());

  EXPECT_EQ(cancel(nobody), JobAnswer{});
  EXPECT_EQ(reschedule(nobody, in(hours(1))), JobAnswer{});
  EXPECT_EQ(value_of(operations_->job(nobody, soon())), std::nullopt);
  EXPECT_THAT(harness_->audit(), IsEmpty());
}

TEST_P(JobOperationsConformance, A_paused_queue_gives_nothing_until_it_is_resumed) {
  enqueue();
  const auto pause = [&] {
    return value_of(operations_->queue_pause("shipping", ann, now(), soon()));
  };
  const auto resume = [&] {
    return value_of(operations_->queue_resume("shipping", ann, now(), soon()));
  };

  EXPECT_FALSE(resume()) << "it was not paused";
  EXPECT_TRUE(pause());
  EXPECT_FALSE(pause()) << "once is enough";
  EXPECT_THAT(take(), IsEmpty());
  const auto queues = value_of(operations_->status(now(), soon())).queues;
  ASSERT_THAT(queues, SizeIs(1));
  EXPECT_EQ(queues[0].queue, "shipping");
  EXPECT_EQ(queues[0].paused_at, now());
  EXPECT_EQ(queues[0].paused_by, "ann");
  EXPECT_EQ(queues[0].reason, "the customer asked");

  EXPECT_TRUE(resume());
  EXPECT_THAT(take(), SizeIs(1));
  EXPECT_THAT(value_of(operations_->status(now(), soon())).queues, IsEmpty());
  EXPECT_THAT(harness_->audit(),
              ElementsAre(by_ann("job_enqueue"), by_ann("queue_pause"), by_ann("queue_resume")));
}

TEST_P(JobOperationsConformance, A_paused_queue_lets_finish_what_runs) {
  enqueue();
  const auto task = take_one();
  ASSERT_TRUE(value_of(operations_->queue_pause("shipping", ann, now(), soon())));

  EXPECT_EQ(record(task, DeliveryStatus::completed), RecordAnswer::recorded);
}

TEST_P(JobOperationsConformance, A_limited_queue_gives_its_rate_and_no_more) {
  for (int i = 0; i < 5; ++i)
    enqueue();
  const auto limit = [&](std::optional<RateLimit> rate) {
    return value_of(operations_->queue_limit("shipping", rate, ann, now(), soon()));
  };

  EXPECT_TRUE(limit(RateLimit{2, seconds(10)}));
  EXPECT_FALSE(limit(RateLimit{2, seconds(10)})) << "nothing has changed";
  EXPECT_THAT(take(), SizeIs(2));
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_TRUE(limit(RateLimit{4, seconds(10)}));
  EXPECT_THAT(take(), IsEmpty()) << "a higher rate is no new bucket";
  const auto queues = value_of(operations_->status(now(), soon())).queues;
  ASSERT_THAT(queues, SizeIs(1));
  EXPECT_EQ(queues[0].rate_limit, (RateLimit{4, seconds(10)}));

  EXPECT_TRUE(limit(std::nullopt));
  EXPECT_FALSE(limit(std::nullopt));
  EXPECT_THAT(take(), SizeIs(3));
}

TEST_P(JobOperationsConformance, A_queue_or_a_rate_that_cannot_be_is_refused) {
  for (const auto* queue : {"", "Mail", "a/b", "half \xc3"}) {
    EXPECT_FALSE(operations_->queue_pause(queue, ann, now(), soon()).ok()) << queue;
    EXPECT_FALSE(operations_->queue_resume(queue, ann, now(), soon()).ok()) << queue;
    EXPECT_FALSE(operations_->queue_limit(queue, {}, ann, now(), soon()).ok()) << queue;
  }
  for (const auto& rate :
       {RateLimit{0, seconds(1)}, RateLimit{-1, seconds(1)}, RateLimit{1, seconds(0)},
        RateLimit{1, hours(24 * 31)}, RateLimit{RateLimit::most_limit + 1, seconds(1)}}) {
    EXPECT_FALSE(operations_->queue_limit("mail", rate, ann, now(), soon()).ok()) << rate.limit;
  }
  EXPECT_THAT(harness_->audit(), IsEmpty());
}

TEST_P(JobOperationsConformance, G_02_jobs_are_counted_by_queue_and_name) {
  EXPECT_THAT(value_of(operations_->status(now(), soon())).jobs, IsEmpty());

  enqueue([](auto& request) { request.policy.queue = "mail"; });
  for (int i = 0; i < 6; ++i)
    enqueue();
  enqueue([](auto& request) { request.due = in(hours(1)); });
  record(take_one(), DeliveryStatus::completed);
  record(take_one(), DeliveryStatus::failed, [](auto& update) {
    update.attempts = 1;
    update.deaths = 1;
    update.failure_code = "worker_died";
  });
  record(take_one(), DeliveryStatus::cancelled);
  record(take_one(), DeliveryStatus::pending, [](auto& update) {
    update.attempts = 1;
    update.snoozes = 2;
    update.interruptions = 3;
    update.available_in = hours(1);
  });
  take_one();
  clock_.advance(seconds(20));

  const auto all = value_of(operations_->status(now(), soon())).jobs;
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].queue, "mail");
  EXPECT_EQ(all[0].due, 1);
  const auto& shipping = all[1];
  EXPECT_EQ(shipping.queue, "shipping");
  EXPECT_EQ(shipping.job, "ship");
  EXPECT_EQ(shipping.due, 1);
  EXPECT_EQ(shipping.delayed, 2);
  EXPECT_EQ(shipping.dispatched, 1);
  EXPECT_EQ(shipping.overdue, 1) << "its timeout is 10 s";
  EXPECT_EQ(shipping.completed, 1);
  EXPECT_EQ(shipping.failed, 1);
  EXPECT_EQ(shipping.discarded, 0);
  EXPECT_EQ(shipping.cancelled, 1);
  EXPECT_EQ(shipping.retries, 2);
  EXPECT_EQ(shipping.deaths, 1) << "that which runs has not died";
  EXPECT_EQ(shipping.snoozes, 2);
  EXPECT_EQ(shipping.interruptions, 3);
  EXPECT_EQ(shipping.oldest_due_age, seconds(20));
  EXPECT_EQ(shipping.oldest_dispatched_age, seconds(20));
}

TEST_P(JobOperationsConformance, A_running_job_shows_its_worker_its_progress_and_its_deadline) {
  const auto id = enqueue();
  const auto task = take_one();
  AttemptUpdate update;
  update.delivery_id = id;
  update.dispatch_id = task.dispatch_id;
  update.percent = 40;
  update.note = "packing";
  update.checkpoint = "c4n4ry";
  update.now = now();
  EXPECT_TRUE(value_of(jobs_->touch(update, soon())).current);

  const auto job = show(id);

  EXPECT_EQ(job.delivery.status, DeliveryStatus::dispatched);
  EXPECT_EQ(job.delivery.dispatch_id, task.dispatch_id);
  EXPECT_EQ(job.delivery.delivery_timeout_at, now() + seconds(10));
  EXPECT_EQ(job.worker, worker_.id);
  EXPECT_EQ(job.worker_name, "packer");
  EXPECT_EQ(job.worker_host, "host-1/boot-1");
  EXPECT_EQ(job.percent, 40);
  EXPECT_EQ(job.note, "packing");
  EXPECT_EQ(job.checkpoint_bytes, 6);
  EXPECT_EQ(job.deaths, 0);
}

TEST_P(JobOperationsConformance, Jobs_are_listed_newest_first_page_by_page) {
  std::vector<DeliveryId> ids;
  for (int i = 0; i < 5; ++i)
    ids.push_back(enqueue());
  JobFilter filter;
  filter.limit = 2;

  std::vector<std::vector<DeliveryId>> pages;
  do {
    const auto page = value_of(operations_->jobs(filter, soon()));
    if (!page.jobs.empty()) pages.push_back(ids_of(page));
    filter.after = page.next;
  } while (filter.after && pages.size() < 9);

  EXPECT_THAT(pages, ElementsAre(ElementsAre(ids[4], ids[3]), ElementsAre(ids[2], ids[1]),
                                 ElementsAre(ids[0])));
}

TEST_P(JobOperationsConformance, A_list_holds_only_jobs_that_meet_every_condition) {
  const auto mail = enqueue([](auto& request) { request.policy.queue = "mail"; });
  const auto bill = enqueue([](auto& request) { request.policy.job = "bill"; });
  const auto running = enqueue([](auto& request) { request.policy.priority = -1; });
  ASSERT_EQ(take_one().job.delivery_id, running);
  const auto listed = [&](const std::function<void(JobFilter&)>& change) {
    JobFilter filter;
    change(filter);
    return ids_of(value_of(operations_->jobs(filter, soon())));
  };

  EXPECT_THAT(listed([](auto& filter) { filter.queue = "mail"; }), ElementsAre(mail));
  EXPECT_THAT(listed([](auto& filter) { filter.job = "bill"; }), ElementsAre(bill));
  EXPECT_THAT(listed([](auto& filter) { filter.status = DeliveryStatus::dispatched; }),
              ElementsAre(running));
  EXPECT_THAT(listed([](auto& filter) { filter.status = DeliveryStatus::failed; }), IsEmpty());
  EXPECT_THAT(listed([](auto& filter) {
                filter.queue = "mail";
                filter.job = "bill";
              }),
              IsEmpty());
}

TEST_P(JobOperationsConformance, A_search_that_finds_nothing_ends_at_its_bound_and_says_where) {
  const auto oldest = enqueue([](auto& request) { request.policy.queue = "mail"; });
  for (int i = 0; i < 5; ++i)
    enqueue();
  JobFilter filter;
  filter.queue = "mail";
  filter.examine = 2;

  std::vector<std::size_t> found;
  do {
    const auto page = value_of(operations_->jobs(filter, soon()));
    found.push_back(page.jobs.size());
    if (!page.jobs.empty()) {
      EXPECT_THAT(ids_of(page), ElementsAre(oldest));
    }
    filter.after = page.next;
  } while (filter.after && found.size() < 9 && found.back() == 0);

  EXPECT_THAT(found, ElementsAre(0, 0, 1));
}

TEST_P(JobOperationsConformance, A_page_without_rows_or_without_end_is_refused) {
  JobFilter filter;
  filter.limit = 0;
  EXPECT_FALSE(operations_->jobs(filter, soon()).ok());
  filter.limit = most_listed + 1;
  EXPECT_FALSE(operations_->jobs(filter, soon()).ok());
  filter = {};
  filter.examine = 0;
  EXPECT_FALSE(operations_->jobs(filter, soon()).ok());
}

TEST_P(JobOperationsConformance, Workers_are_listed_while_they_live_and_with_the_ended_on_demand) {
  const auto first = start_worker();
  beat(WorkerState::stopped);
  clock_.advance(seconds(1));
  const auto second = start_worker();
  enqueue();
  take_one();
  clock_.advance(seconds(3));

  const auto living = value_of(operations_->workers(false, now(), soon()));
  ASSERT_THAT(living, SizeIs(1));
  EXPECT_EQ(living[0].info.id, second);
  EXPECT_EQ(living[0].info.name, "packer");
  EXPECT_EQ(living[0].info.host, "host-1/boot-1");
  EXPECT_EQ(living[0].info.pid, 4711);
  EXPECT_EQ(living[0].info.version, "1.2.3");
  EXPECT_THAT(living[0].info.queues, ElementsAre("mail", "shipping"));
  EXPECT_EQ(living[0].info.state, WorkerState::running);
  EXPECT_EQ(living[0].last_seen_age, seconds(3));
  EXPECT_EQ(living[0].running, 1);

  const auto all = value_of(operations_->workers(true, now(), soon()));
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[1].info.id, first);
  EXPECT_EQ(all[1].info.state, WorkerState::stopped);
}

TEST_P(JobOperationsConformance, What_nobody_takes_or_ends_and_who_says_nothing_is_found) {
  const auto codes = [&] {
    const auto status = value_of(operations_->status(now(), soon()));
    const auto workers = value_of(operations_->workers(false, now(), soon()));
    std::vector<std::string> found;
    for (const auto& finding : diagnose_jobs(status, workers))
      found.push_back(finding.code + " " + finding.subject.substr(0, finding.subject.find(' ', 7)));
    return found;
  };
  start_worker();  // of mail and shipping
  enqueue();
  take_one();
  enqueue([](auto& request) { request.policy.queue = "mail"; });
  enqueue([](auto& request) { request.policy.queue = "print"; });
  EXPECT_THAT(codes(), IsEmpty()) << "a worker of it may be about to start";

  clock_.advance(std::chrono::minutes(2));
  beat(WorkerState::running);
  EXPECT_THAT(codes(),
              ElementsAre("queue_without_worker queue print", "jobs_overdue queue shipping"));

  clock_.advance(std::chrono::minutes(2));
  EXPECT_THAT(codes(),
              ElementsAre("queue_without_worker queue mail", "queue_without_worker queue print",
                          "jobs_overdue queue shipping", "worker_silent worker packer"));

  beat(WorkerState::running);
  value_of(operations_->queue_pause("print", ann, now(), soon()));
  EXPECT_THAT(codes(), ElementsAre("queue_paused queue print", "jobs_overdue queue shipping"));
}

}  // namespace postrider::testing
