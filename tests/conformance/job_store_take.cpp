// What `JobStore::take` promises: due jobs, in order, each to one worker.

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "conformance/job_store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_P(JobStoreConformance, Without_jobs_nothing_is_taken) {
  const auto batch = take();

  EXPECT_THAT(batch.tasks, IsEmpty());
  EXPECT_FALSE(batch.more);
  EXPECT_EQ(batch.next_in, std::nullopt);
}

TEST_P(JobStoreConformance, A_task_comes_with_all_that_was_stored) {
  const auto id = plant([](NewDelivery& job) {
    job.attempts = 1;
    job.job->policy.on_worker_death = OnWorkerDeath::retry;
    job.job->policy.max_deaths = 7;
    job.job->policy.timeout_limit = hours(24 * 7);
    job.timeout = milliseconds(12'345);
  });

  const auto task = take_one();

  EXPECT_EQ(task.job.delivery_id, id);
  EXPECT_EQ(task.job.route, "mailing");
  EXPECT_EQ(task.job.job, "send");
  EXPECT_EQ(task.job.queue, "mail");
  EXPECT_EQ(task.job.attempts, 1);
  EXPECT_THAT(task.job.retry_delays, ElementsAre(seconds(1), seconds(5)));
  EXPECT_EQ(task.job.timeout, milliseconds(12'345));
  EXPECT_EQ(task.job.timeout_limit, hours(24 * 7));
  EXPECT_EQ(task.job.on_worker_death, OnWorkerDeath::retry);
  EXPECT_EQ(task.job.max_deaths, 7);
  EXPECT_EQ(task.job.deaths, 0);
  EXPECT_EQ(task.job.snoozes, 0);
  EXPECT_EQ(task.job.interruptions, 0);
  EXPECT_FALSE(task.job.cancel_requested);
  EXPECT_EQ(task.checkpoint, "");
  EXPECT_EQ(task.malformed, "");
  EXPECT_EQ(task.until_timeout, milliseconds(12'345));
  EXPECT_NE(task.dispatch_id, DispatchId());
}

TEST_P(JobStoreConformance, A_task_comes_with_its_whole_event) {
  NewEvent written;
  written.id = EventId(fresh_uuid());
  written.type = "order.placed";
  written.aggregate = Aggregate{"order", "\xd1\x8f"};
  written.aggregate_version = 3;
  written.payload = std::string("\0\xff{}", 4);
  written.content_type = "application/octet-stream";
  written.headers = {{"trace", "00-ab"}};
  value_of(store_->add(std::vector{written}, soon()));
  plant([&](NewDelivery& job) { job.event_id = *written.id; });

  const auto task = take_one();

  ASSERT_NE(task.event, nullptr);
  EXPECT_EQ(task.event->id, *written.id);
  EXPECT_EQ(task.job.event_id, *written.id);
  EXPECT_EQ(task.job.event_seq, task.event->seq);
  EXPECT_EQ(task.event->aggregate, written.aggregate);
  EXPECT_EQ(task.event->aggregate_version, written.aggregate_version);
  EXPECT_EQ(task.event->type, written.type);
  EXPECT_EQ(task.event->payload, written.payload);
  EXPECT_EQ(task.event->content_type, written.content_type);
  EXPECT_EQ(task.event->headers, written.headers);
}

TEST_P(JobStoreConformance, Difficult_payloads_reach_the_worker_as_they_are) {
  const auto payloads = difficult_payloads();
  for (const auto& payload : payloads) {
    NewEvent event;
    event.id = EventId(fresh_uuid());
    event.type = "order.placed";
    event.payload = payload;
    value_of(store_->add(std::vector{event}, soon()));
    plant([&](NewDelivery& job) { job.event_id = *event.id; });
  }

  const auto batch = take();

  ASSERT_THAT(batch.tasks, SizeIs(payloads.size()));
  for (std::size_t i = 0; i < payloads.size(); ++i)
    EXPECT_EQ(batch.tasks[i].event->payload, payloads[i]) << "payload " << i;
}

TEST_P(JobStoreConformance, A_taken_job_is_dispatched_to_its_worker_until_its_deadline) {
  const auto id = plant();

  const auto task = take_one();

  const auto stored = row(id);
  EXPECT_EQ(stored.status, DeliveryStatus::dispatched);
  EXPECT_EQ(stored.dispatch_id, task.dispatch_id);
  EXPECT_EQ(stored.worker, worker_);
  EXPECT_EQ(stored.dispatched_at, now());
  EXPECT_EQ(stored.delivery_timeout_at, now() + seconds(10));
  EXPECT_EQ(stored.finished_at, std::nullopt);
  EXPECT_THAT(take().tasks, IsEmpty());
}

TEST_P(JobStoreConformance, JT_08_a_dispatch_counts_as_a_death_until_its_end_is_recorded) {
  const auto id = plant();

  const auto first = take_one();
  EXPECT_EQ(first.job.deaths, 0) << "before this dispatch";
  EXPECT_EQ(row(id).deaths, 1);
  record(retried(first, milliseconds(0)));
  EXPECT_EQ(row(id).deaths, 0);

  auto death = retried(take_one(), milliseconds(0));
  death.deaths = 1;
  record(death);
  EXPECT_EQ(row(id).deaths, 1);
  EXPECT_EQ(take_one().job.deaths, 1);
  EXPECT_EQ(row(id).deaths, 2);
}

TEST_P(JobStoreConformance, Jobs_are_taken_by_priority_then_due_time_then_id) {
  const auto late = plant(delayed(seconds(2)));
  const auto first = plant(delayed(seconds(1)));
  const auto second = plant(delayed(seconds(1)));
  const auto lazy = plant(with_priority(10));
  const auto urgent = plant(with({with_priority(-5), delayed(seconds(3))}));
  clock_.advance(seconds(3));

  EXPECT_THAT(ids_of(take()), ElementsAre(urgent, first, second, late, lazy));
}

TEST_P(JobStoreConformance, A_limit_takes_from_the_front) {
  const auto third = plant(with_priority(3));
  const auto second = plant(with_priority(2));
  const auto first = plant(with_priority(1));

  const auto batch = take(2);

  EXPECT_THAT(ids_of(batch), ElementsAre(first, second));
  EXPECT_TRUE(batch.more);
  const auto rest = take(2);
  EXPECT_THAT(ids_of(rest), ElementsAre(third));
  EXPECT_FALSE(rest.more);
}

TEST_P(JobStoreConformance, Queues_are_limited_each_and_all_together) {
  const auto mail = plant_many(3);
  const auto print = plant_many(3, in_queue("print"));
  auto request = take_request();
  request.queues = {{"print", 2}, {"mail", 2}};
  request.limit = 3;

  const auto batch = take(request);

  EXPECT_THAT(ids_of(batch), ElementsAre(print[0], print[1], mail[0]));
  EXPECT_TRUE(batch.more);
}

TEST_P(JobStoreConformance, An_empty_queue_leaves_its_share_to_the_next) {
  const auto mail = plant_many(3);
  auto request = take_request();
  request.queues = {{"print", 3}, {"mail", 3}};
  request.limit = 3;

  EXPECT_THAT(ids_of(take(request)), ElementsAre(mail[0], mail[1], mail[2]));
}

TEST_P(JobStoreConformance, Only_queues_that_are_named_give_jobs) {
  plant(in_queue("print"));
  auto request = take_request();
  request.queues = {{"mail", 10}, {"fax", 10}};

  const auto batch = take(request);

  EXPECT_THAT(batch.tasks, IsEmpty());
  EXPECT_EQ(batch.next_in, std::nullopt);
  request.queues.clear();
  EXPECT_THAT(take(request).tasks, IsEmpty());
}

TEST_P(JobStoreConformance, A_queue_with_a_share_of_nothing_gives_nothing) {
  plant();
  auto request = take_request();
  request.queues = {{"mail", 0}};

  EXPECT_THAT(take(request).tasks, IsEmpty());
}

TEST_P(JobStoreConformance, A_delayed_job_is_taken_when_its_time_has_come_and_no_sooner) {
  const auto id = plant(delayed(milliseconds(1500)));

  EXPECT_EQ(take().next_in, milliseconds(1500));
  clock_.advance(milliseconds(1499));
  const auto early = take();
  EXPECT_THAT(early.tasks, IsEmpty());
  EXPECT_EQ(early.next_in, milliseconds(1));
  clock_.advance(milliseconds(1));
  EXPECT_THAT(ids_of(take()), ElementsAre(id));
}

TEST_P(JobStoreConformance, The_wait_for_the_next_job_is_the_nearest_of_all_priorities) {
  plant(delayed(seconds(9)));
  plant(with({with_priority(7), delayed(seconds(4))}));
  plant(with({with_priority(-7), delayed(seconds(6))}));
  plant(with({in_queue("print"), delayed(seconds(1))}));
  plant();

  EXPECT_EQ(take().next_in, seconds(4));
}

TEST_P(JobStoreConformance, Delayed_jobs_of_high_priority_do_not_hide_a_due_one) {
  plant_many(20, with({with_priority(-100), delayed(hours(1))}));
  const auto due = plant(with_priority(100));

  EXPECT_THAT(ids_of(take(1)), ElementsAre(due));
}

TEST_P(JobStoreConformance, With_ageing_what_has_waited_long_goes_before_what_is_more_urgent) {
  const auto lazy = plant(with_priority(5));
  clock_.advance(seconds(55));
  const auto urgent = plant(with_priority(0));
  auto request = take_request(1);
  request.now = now();

  request.ageing = seconds(10);
  EXPECT_THAT(ids_of(take(request)), ElementsAre(lazy)) << "by due time, as both count as 0";
  const auto other = plant(with_priority(5));
  EXPECT_THAT(ids_of(take(request)), ElementsAre(urgent)) << "nothing has waited";
  EXPECT_THAT(ids_of(take(request)), ElementsAre(other));
}

TEST_P(JobStoreConformance, Without_ageing_priorities_are_strict) {
  plant(with_priority(1));
  clock_.advance(hours(24 * 365));
  const auto urgent = plant(with_priority(0));

  EXPECT_THAT(ids_of(take(1)), ElementsAre(urgent));
}

TEST_P(JobStoreConformance, Jobs_of_brokers_are_not_for_workers) {
  plant(over_broker());

  const auto batch = take();

  EXPECT_THAT(batch.tasks, IsEmpty());
  EXPECT_EQ(batch.next_in, std::nullopt);
}

TEST_P(JobStoreConformance, What_has_ended_is_not_taken_again) {
  const auto ids = plant_many(3);
  const auto batch = take();
  ASSERT_THAT(batch.tasks, SizeIs(3));
  record_all({completed(batch.tasks[0]), failed(batch.tasks[1]), cancelled(batch.tasks[2])});
  clock_.advance(hours(24));

  const auto after = take();

  EXPECT_THAT(after.tasks, IsEmpty());
  EXPECT_EQ(after.next_in, std::nullopt);
}

TEST_P(JobStoreConformance, A_checkpoint_comes_along_with_the_next_attempt) {
  plant();
  const auto first = take_one();
  const std::string cursor("page 7\0\xff", 8);
  auto update = attempt_of(first);
  update.checkpoint = cursor;
  EXPECT_TRUE(touch(update).current);
  record(retried(first, seconds(1)));
  clock_.advance(seconds(1));

  const auto second = take_one();

  EXPECT_EQ(second.checkpoint, cursor);
  EXPECT_EQ(second.job.attempts, 1);
  EXPECT_NE(second.dispatch_id, first.dispatch_id);
}

TEST_P(JobStoreConformance, A_task_of_a_malformed_event_says_so) {
  const auto event = harness_->plant_malformed_event();
  if (!event) GTEST_SKIP() << "no malformed event can be planted";
  plant([&](NewDelivery& job) { job.event_id = *event; });

  const auto task = take_one();

  EXPECT_NE(task.malformed, "");
  ASSERT_NE(task.event, nullptr);
}

TEST_P(JobStoreConformance, A_worker_that_was_declared_dead_takes_nothing) {
  plant();
  const auto worker = start_worker();
  expect_ok(jobs_->declare_dead(worker, now(), soon()));

  EXPECT_THAT(take_for(worker).tasks, IsEmpty());
  EXPECT_THAT(take().tasks, SizeIs(1));
}

TEST_P(JobStoreConformance, A_worker_that_never_said_anything_takes_nothing) {
  plant();

  EXPECT_THAT(take_for(WorkerId(fresh_uuid())).tasks, IsEmpty());
}

TEST_P(JobStoreConformance, A_worker_that_has_signed_off_takes_nothing) {
  plant();
  const auto worker = start_worker();
  beat(worker, {}, WorkerState::stopped);

  EXPECT_THAT(take_for(worker).tasks, IsEmpty());
}

TEST_P(JobStoreConformance, Workers_that_take_at_once_never_get_the_same_job) {
  constexpr std::size_t jobs = 120;
  constexpr int takers = 4;
  plant_many(jobs);
  std::vector<WorkerId> workers;
  for (int i = 0; i < takers; ++i)
    workers.push_back(start_worker());
  std::mutex mutex;
  std::set<DeliveryId> taken;
  std::size_t twice = 0;
  const auto request = take_request(3);
  const auto deadline = soon();

  std::vector<std::thread> threads;
  for (int i = 0; i < takers; ++i) {
    threads.emplace_back([&, worker = workers[static_cast<std::size_t>(i)]] {
      const auto store = harness_->open_job_store();
      auto own = request;
      own.worker = worker;
      for (bool all = false; !all && !deadline.passed();) {
        const auto batch = store->take(own, soon());
        const std::lock_guard lock(mutex);
        for (const auto& id : batch.ok() ? ids_of(*batch) : std::vector<DeliveryId>())
          twice += taken.insert(id).second ? 0 : 1;
        all = taken.size() == jobs;
      }
    });
  }
  for (auto& thread : threads)
    thread.join();

  EXPECT_EQ(taken.size(), jobs);
  EXPECT_EQ(twice, 0U);
}

// start and hand_out

TEST_P(JobStoreConformance, Due_jobs_of_brokers_are_handed_out_without_a_worker) {
  const auto first = plant(over_broker());
  const auto other = plant(over_broker("else"));
  const auto later = plant(with({over_broker(), delayed(seconds(5))}));
  const auto own = plant();

  const auto batch = value_of(jobs_->hand_out({{"broker"}, 10, now()}, soon()));

  EXPECT_THAT(ids_of(batch), ElementsAre(first));
  EXPECT_EQ(batch.next_in, seconds(5));
  ASSERT_NE(batch.tasks[0].event, nullptr);
  EXPECT_EQ(row(first).status, DeliveryStatus::dispatched);
  EXPECT_EQ(row(first).dispatch_id, batch.tasks[0].dispatch_id);
  EXPECT_EQ(row(first).worker, std::nullopt);
  EXPECT_EQ(row(first).deaths, 1);
  EXPECT_EQ(batch.tasks[0].job.deaths, 0);
  for (const auto& id : {other, later, own})
    EXPECT_EQ(row(id).status, DeliveryStatus::pending);
}

TEST_P(JobStoreConformance, Handing_out_is_limited_from_the_front) {
  const auto ids = plant_many(3, over_broker());

  const auto batch = value_of(jobs_->hand_out({{"broker"}, 2, now()}, soon()));

  EXPECT_THAT(ids_of(batch), ElementsAre(ids[0], ids[1]));
  EXPECT_TRUE(batch.more);
}

TEST_P(JobStoreConformance, A_paused_queue_is_not_handed_out) {
  plant(over_broker());
  pause("mail");

  EXPECT_THAT(value_of(jobs_->hand_out({{"broker"}, 2, now()}, soon())).tasks, IsEmpty());
}

TEST_P(JobStoreConformance, A_task_from_a_broker_is_started_once) {
  const auto id = plant(over_broker());
  const auto handed = value_of(jobs_->hand_out({{"broker"}, 1, now()}, soon())).tasks.at(0);
  const auto worker = start_worker();
  clock_.advance(seconds(4));

  const auto answer =
      value_of(jobs_->start({worker, id, handed.dispatch_id, "send", now()}, soon()));

  EXPECT_EQ(answer.kind, StartAnswer::Kind::started);
  ASSERT_TRUE(answer.task.has_value());
  EXPECT_EQ(answer.task->job.delivery_id, id);
  EXPECT_EQ(answer.task->dispatch_id, handed.dispatch_id);
  EXPECT_EQ(answer.task->job.deaths, 0);
  EXPECT_EQ(answer.task->until_timeout, seconds(6)) << "the deadline covers waiting";
  ASSERT_NE(answer.task->event, nullptr);
  EXPECT_EQ(row(id).worker, worker);
  EXPECT_EQ(row(id).deaths, 1);

  const auto again =
      value_of(jobs_->start({start_worker(), id, handed.dispatch_id, "send", now()}, soon()));
  EXPECT_EQ(again.kind, StartAnswer::Kind::taken);
  EXPECT_EQ(again.task, std::nullopt);
  EXPECT_EQ(row(id).worker, worker);
}

TEST_P(JobStoreConformance, A_start_whose_answer_was_lost_is_given_again_to_the_same_worker_only) {
  const auto id = plant(over_broker());
  const auto handed = value_of(jobs_->hand_out({{"broker"}, 1, now()}, soon())).tasks.at(0);
  const auto worker = start_worker();
  const auto start = [&](WorkerId who, bool again) {
    return value_of(jobs_->start({who, id, handed.dispatch_id, "send", now(), again}, soon()));
  };
  EXPECT_EQ(start(worker, true).kind, StartAnswer::Kind::started) << "the first one never arrived";

  const auto answer = start(worker, true);

  EXPECT_EQ(answer.kind, StartAnswer::Kind::started);
  ASSERT_TRUE(answer.task.has_value());
  EXPECT_EQ(answer.task->dispatch_id, handed.dispatch_id);
  EXPECT_EQ(row(id).deaths, 1) << "counted once";
  EXPECT_EQ(start(worker, false).kind, StartAnswer::Kind::taken);
  EXPECT_EQ(start(start_worker(), true).kind, StartAnswer::Kind::taken);
  record(retried(handed, milliseconds(0)));
  EXPECT_EQ(start(worker, true).kind, StartAnswer::Kind::stale);
}

TEST_P(JobStoreConformance, A_worker_that_was_declared_dead_learns_nothing_of_a_task) {
  const auto id = plant(over_broker());
  const auto handed = value_of(jobs_->hand_out({{"broker"}, 1, now()}, soon())).tasks.at(0);
  const auto worker = start_worker();
  expect_ok(jobs_->declare_dead(worker, now(), soon()));

  const auto answer =
      value_of(jobs_->start({worker, id, handed.dispatch_id, "send", now()}, soon()));

  EXPECT_EQ(answer.kind, StartAnswer::Kind::worker_gone) << "it is not stale";
  EXPECT_EQ(row(id).worker, std::nullopt);
  EXPECT_EQ(row(id).status, DeliveryStatus::dispatched);
}

TEST_P(JobStoreConformance, A_task_that_nobody_has_started_is_taken_back) {
  const auto id = plant(over_broker());
  const auto handed = value_of(jobs_->hand_out({{"broker"}, 1, now()}, soon())).tasks.at(0);
  auto update = retried(handed, milliseconds(0));
  update.unless_started = true;

  EXPECT_EQ(record(update), RecordAnswer::recorded);
  EXPECT_EQ(row(id).status, DeliveryStatus::pending);
}

TEST_P(JobStoreConformance, A_task_that_a_worker_has_started_is_not_taken_back) {
  const auto id = plant(over_broker());
  const auto handed = value_of(jobs_->hand_out({{"broker"}, 1, now()}, soon())).tasks.at(0);
  value_of(jobs_->start({start_worker(), id, handed.dispatch_id, "send", now()}, soon()));
  auto update = retried(handed, milliseconds(0));
  update.unless_started = true;

  EXPECT_EQ(record(update), RecordAnswer::stale);
  EXPECT_EQ(row(id).status, DeliveryStatus::dispatched);
}

TEST_P(JobStoreConformance, A_stale_task_from_a_broker_is_not_started) {
  const auto id = plant(over_broker());
  const auto handed = value_of(jobs_->hand_out({{"broker"}, 1, now()}, soon())).tasks.at(0);
  const auto worker = start_worker();
  const auto start = [&](DeliveryId delivery, DispatchId dispatch) {
    return value_of(jobs_->start({worker, delivery, dispatch, "send", now()}, soon())).kind;
  };

  EXPECT_EQ(start(id, DispatchId(fresh_uuid())), StartAnswer::Kind::stale);
  EXPECT_EQ(start(DeliveryId(fresh_uuid()), handed.dispatch_id), StartAnswer::Kind::stale);
  record(retried(handed, milliseconds(0)));
  EXPECT_EQ(start(id, handed.dispatch_id), StartAnswer::Kind::stale);
}

TEST_P(JobStoreConformance, A_task_from_a_broker_for_another_job_is_told_apart) {
  const auto id = plant(over_broker());
  const auto handed = value_of(jobs_->hand_out({{"broker"}, 1, now()}, soon())).tasks.at(0);

  const auto answer =
      value_of(jobs_->start({start_worker(), id, handed.dispatch_id, "print", now()}, soon()));

  EXPECT_EQ(answer.kind, StartAnswer::Kind::wrong_job);
  EXPECT_EQ(row(id).worker, std::nullopt);
}

}  // namespace
}  // namespace postrider::testing
