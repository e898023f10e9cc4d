// Heartbeats, deaths, and attempts that nobody will end.

#include <atomic>
#include <thread>

#include "conformance/job_store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST_P(JobStoreConformance, A_first_heartbeat_registers_a_worker) {
  HeartbeatRequest request;
  request.worker = {WorkerId(fresh_uuid()),
                    "\xd0\xbf\xd0\xbe\xd1\x87\xd1\x82\xd0\xb0",
                    "host-1/boot-7",
                    4711,
                    "0.3.0",
                    {"mail", "print"},
                    WorkerState::quiet};
  request.now = now();

  const auto answer = value_of(jobs_->heartbeat(request, soon()));

  EXPECT_TRUE(answer.known);
  EXPECT_THAT(answer.cancelled, IsEmpty());
  EXPECT_THAT(answer.lost, IsEmpty());
  const auto workers = value_of(jobs_->workers_on("host-1/boot-7", soon()));
  ASSERT_THAT(workers, SizeIs(1));
  EXPECT_EQ(workers[0].id, request.worker.id);
  EXPECT_EQ(workers[0].name, request.worker.name);
  EXPECT_EQ(workers[0].host, "host-1/boot-7");
  EXPECT_EQ(workers[0].pid, 4711);
  EXPECT_EQ(workers[0].version, "0.3.0");
  EXPECT_THAT(workers[0].queues, ElementsAre("mail", "print"));
  EXPECT_EQ(workers[0].state, WorkerState::quiet);
}

TEST_P(JobStoreConformance, Workers_of_a_host_are_those_that_have_not_ended) {
  const auto running = start_worker();
  const auto stopping = start_worker();
  beat(stopping, {}, WorkerState::stopping);
  const auto stopped = start_worker();
  beat(stopped, {}, WorkerState::stopped);
  const auto dead = start_worker();
  expect_ok(jobs_->declare_dead(dead, now(), soon()));
  start_worker("host-2");

  std::vector<WorkerId> ids;
  for (const auto& worker : value_of(jobs_->workers_on("host-1", soon())))
    ids.push_back(worker.id);

  EXPECT_THAT(ids, UnorderedElementsAre(running, stopping));
}

TEST_P(JobStoreConformance, A_heartbeat_tells_which_attempts_a_person_wants_to_stop) {
  plant_many(3);
  const auto batch = take();
  ASSERT_THAT(batch.tasks, SizeIs(3));
  harness_->cancel_job(batch.tasks[1].job.delivery_id, now());

  const auto answer = beat(*worker_, dispatches_of(batch));

  EXPECT_TRUE(answer.known);
  EXPECT_THAT(answer.cancelled, ElementsAre(batch.tasks[1].dispatch_id));
  EXPECT_THAT(answer.lost, IsEmpty());
}

TEST_P(JobStoreConformance, A_heartbeat_tells_which_attempts_are_lost) {
  plant_many(3);
  const auto batch = take();
  ASSERT_THAT(batch.tasks, SizeIs(3));
  record(retried(batch.tasks[0], milliseconds(0)));
  ASSERT_THAT(take_for(start_worker()).tasks, SizeIs(1));

  const auto answer = beat(*worker_, dispatches_of(batch));

  EXPECT_THAT(answer.lost, ElementsAre(batch.tasks[0].dispatch_id));
  EXPECT_THAT(answer.cancelled, IsEmpty());
}

TEST_P(JobStoreConformance, F130_a_worker_that_was_declared_dead_is_not_known_any_more) {
  const auto worker = start_worker();
  expect_ok(jobs_->declare_dead(worker, now(), soon()));

  EXPECT_FALSE(beat(worker).known);
  EXPECT_FALSE(beat(worker).known) << "and does not come back by its heartbeat";
  EXPECT_THAT(value_of(jobs_->workers_on("host-1", soon())), IsEmpty());
}

TEST_P(JobStoreConformance, A_worker_that_has_signed_off_stays_away) {
  const auto worker = start_worker();

  EXPECT_TRUE(beat(worker, {}, WorkerState::stopped).known);
  EXPECT_TRUE(beat(worker, {}, WorkerState::stopped).known) << "it may say so twice";
  EXPECT_FALSE(beat(worker).known);
  expect_ok(jobs_->declare_dead(worker, now(), soon()));
  EXPECT_TRUE(beat(worker, {}, WorkerState::stopped).known) << "who has stopped does not die";
}

TEST_P(JobStoreConformance, JT_25_declaring_a_worker_dead_twice_changes_nothing_more) {
  const auto id = plant();
  const auto task = take_one();

  for (int times = 0; times < 2; ++times)
    expect_ok(jobs_->declare_dead(*worker_, now(), soon()));
  expect_ok(jobs_->declare_dead(WorkerId(fresh_uuid()), now(), soon()));

  EXPECT_EQ(row(id).status, DeliveryStatus::dispatched) << "its end is recorded by whoever asks";
  EXPECT_THAT(ids_of(lost()), ElementsAre(id));
  EXPECT_EQ(record(failed(task, "worker_died")), RecordAnswer::recorded);
  EXPECT_THAT(lost().attempts, IsEmpty());
}

TEST_P(JobStoreConformance, Attempts_of_a_dead_worker_are_lost_at_once) {
  const auto id = plant([](NewDelivery& job) {
    job.job->policy.on_worker_death = OnWorkerDeath::retry;
    job.job->policy.max_deaths = 3;
  });
  const auto task = take_one();
  expect_ok(jobs_->declare_dead(*worker_, now(), soon()));

  const auto batch = lost();

  ASSERT_THAT(batch.attempts, SizeIs(1));
  const auto& attempt = batch.attempts[0];
  EXPECT_EQ(attempt.job.delivery_id, id);
  EXPECT_EQ(attempt.job.on_worker_death, OnWorkerDeath::retry);
  EXPECT_EQ(attempt.job.max_deaths, 3);
  EXPECT_EQ(attempt.job.deaths, 0) << "before this dispatch";
  EXPECT_THAT(attempt.job.retry_delays, ElementsAre(seconds(1), seconds(5)));
  EXPECT_EQ(attempt.dispatch_id, task.dispatch_id);
  EXPECT_TRUE(attempt.worker_died);
  EXPECT_EQ(attempt.worker, worker_);
  EXPECT_THAT(batch.died, IsEmpty()) << "it was dead before";
  EXPECT_FALSE(batch.more);
}

TEST_P(JobStoreConformance, JT_02_a_worker_that_says_nothing_is_dead_after_the_threshold) {
  plant([](NewDelivery& job) {
    job.timeout = hours(3);
    job.job->policy.timeout_limit = hours(3);
  });
  take_one();
  clock_.advance(dead_after - milliseconds(1));
  EXPECT_THAT(lost().attempts, IsEmpty());
  EXPECT_TRUE(beat(*worker_).known);
  for (int minutes = 0; minutes < 120; ++minutes) {
    clock_.advance(dead_after - seconds(1));
    EXPECT_TRUE(beat(*worker_).known);
    ASSERT_THAT(lost().attempts, IsEmpty()) << "it lives";
  }

  clock_.advance(dead_after);
  const auto batch = lost();

  EXPECT_THAT(batch.died, ElementsAre(*worker_));
  ASSERT_THAT(batch.attempts, SizeIs(1));
  EXPECT_TRUE(batch.attempts[0].worker_died);
  EXPECT_THAT(lost().died, IsEmpty()) << "one death is told once";
  EXPECT_FALSE(beat(*worker_).known);
}

TEST_P(JobStoreConformance, An_attempt_is_lost_when_its_deadline_has_passed) {
  const auto id = plant();
  const auto task = take_one();

  clock_.advance(milliseconds(9'999));
  EXPECT_THAT(lost().attempts, IsEmpty());
  clock_.advance(milliseconds(1));
  const auto batch = lost();

  EXPECT_THAT(ids_of(batch), ElementsAre(id));
  EXPECT_FALSE(batch.attempts[0].worker_died);
  EXPECT_EQ(batch.attempts[0].dispatch_id, task.dispatch_id);
  EXPECT_EQ(batch.attempts[0].worker, worker_);
  EXPECT_EQ(row(id).status, DeliveryStatus::dispatched) << "asking changes no job";
}

TEST_P(JobStoreConformance, JT_09_a_task_that_no_worker_started_is_lost_at_its_deadline) {
  const auto id = plant(over_broker());
  value_of(jobs_->hand_out({{"broker"}, 1, now()}, soon()));
  clock_.advance(seconds(10));

  const auto batch = lost();

  ASSERT_THAT(ids_of(batch), ElementsAre(id));
  EXPECT_FALSE(batch.attempts[0].worker_died);
  EXPECT_EQ(batch.attempts[0].worker, std::nullopt);
}

TEST_P(JobStoreConformance, Attempts_of_dead_workers_come_before_overdue_ones) {
  const auto ids = plant_many(4);
  const auto slow = start_worker();
  ASSERT_THAT(take_for(slow, 2).tasks, SizeIs(2));
  const auto dead = start_worker();
  ASSERT_THAT(take_for(dead, 2).tasks, SizeIs(2));
  clock_.advance(seconds(11));
  expect_ok(jobs_->declare_dead(dead, now(), soon()));

  const auto first = lost(2);
  EXPECT_THAT(sorted(ids_of(first)), ElementsAre(ids[2], ids[3]));
  EXPECT_TRUE(first.more);
  const auto all = lost(4);
  EXPECT_THAT(all.attempts, SizeIs(4)) << "each once, also those that are both";
  EXPECT_FALSE(all.attempts[3].worker_died);
}

TEST_P(JobStoreConformance, JT_27_a_page_of_healthy_jobs_hides_nothing) {
  const auto healthy = start_worker();
  plant_many(30);
  ASSERT_THAT(take_for(healthy).tasks, SizeIs(30));
  const auto orphan = plant();
  const auto dead = start_worker();
  ASSERT_THAT(take_for(dead).tasks, SizeIs(1));
  expect_ok(jobs_->declare_dead(dead, now(), soon()));

  const auto batch = lost(5);

  EXPECT_THAT(ids_of(batch), ElementsAre(orphan));
  EXPECT_FALSE(batch.more);
}

TEST_P(JobStoreConformance, F133_the_reaper_and_the_worker_cannot_both_end_an_attempt) {
  const auto id = plant();
  const auto task = take_one();
  clock_.advance(seconds(10));
  const auto seen = lost();
  ASSERT_THAT(seen.attempts, SizeIs(1));

  EXPECT_EQ(record(completed(task)), RecordAnswer::recorded);
  auto reaped = retried(task, milliseconds(0));
  reaped.result = "timed_out";

  EXPECT_EQ(record(reaped), RecordAnswer::conflict);
  EXPECT_EQ(row(id).status, DeliveryStatus::completed);
}

// Waiting for work

TEST_P(JobStoreConformance, Waiting_for_work_ends_at_its_deadline) {
  expect_ok(jobs_->await_work({"mail"}, Deadline::after(milliseconds(50))));
  expect_ok(jobs_->await_work({"mail"}, Deadline::after(milliseconds(50))));
  expect_ok(jobs_->await_work({"mail"}, Deadline::after(milliseconds(0))));
}

TEST_P(JobStoreConformance, A_new_job_wakes_who_waits_for_it) {
  const auto request = take_request();
  std::atomic<bool> waiting{false};
  const auto deadline = soon();
  std::size_t taken = 0;
  std::thread worker([&] {
    const auto store = harness_->open_job_store();
    // The first wait may end early, when it begins to listen.
    while (taken == 0 && !deadline.passed()) {
      if (!store->await_work({"mail"}, deadline)) break;
      waiting = true;
      const auto batch = store->take(request, soon());
      if (batch.ok()) taken = batch->tasks.size();
    }
  });
  // A store that ends no wait early has told nobody that it waits.
  for (int tries = 0; !waiting && tries < 20; ++tries)
    std::this_thread::sleep_for(milliseconds(10));
  const auto begun = std::chrono::steady_clock::now();
  plant();
  worker.join();

  EXPECT_EQ(taken, 1U);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(5));
}

TEST_P(JobStoreConformance, A_wake_ends_a_wait_that_runs_or_the_next_one) {
  jobs_->wake();
  expect_ok(jobs_->await_work({"mail"}, soon()));
  const auto begun = std::chrono::steady_clock::now();
  std::atomic<bool> ended{false};
  std::thread waker([&] {
    while (!ended) {
      jobs_->wake();
      std::this_thread::sleep_for(milliseconds(10));
    }
  });

  expect_ok(jobs_->await_work({"mail"}, soon()));
  ended = true;
  waker.join();

  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(10));
}

TEST_P(JobStoreConformance, The_schema_of_jobs_is_there_and_the_traits_are_true) {
  expect_ok(jobs_->check_schema(soon()));
  EXPECT_NE(jobs_->traits().name, "");
}

}  // namespace
}  // namespace postrider::testing
