// What `JobStore::record` promises: the first end of a dispatch counts, and every caller is told.

#include "conformance/job_store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto recorded = RecordAnswer::recorded;
constexpr auto repeated = RecordAnswer::repeated;
constexpr auto conflict = RecordAnswer::conflict;
constexpr auto stale = RecordAnswer::stale;

TEST_P(JobStoreConformance, Nothing_to_record_is_fine) {
  EXPECT_THAT(record_all({}), IsEmpty());
}

TEST_P(JobStoreConformance, A_completed_job_is_final) {
  const auto id = plant();
  const auto task = take_one();
  clock_.advance(seconds(2));

  EXPECT_EQ(record(completed(task)), recorded);

  const auto stored = row(id);
  EXPECT_EQ(stored.status, DeliveryStatus::completed);
  EXPECT_EQ(stored.finished_at, now());
  EXPECT_EQ(stored.delivery_timeout_at, std::nullopt);
  EXPECT_EQ(stored.dispatch_id, task.dispatch_id);
  EXPECT_EQ(stored.result, "done");
  EXPECT_EQ(stored.deaths, 0);
  EXPECT_EQ(stored.attempts, 0);
}

TEST_P(JobStoreConformance, A_failed_job_keeps_its_reason) {
  const auto id = plant();
  const auto task = take_one();
  auto update = failed(task, "no_such_card");
  update.attempts = 3;
  update.failure_detail = "\xd0\xbd\xd0\xb5\xd1\x82 'card' \\ \"\xf0\x9f\x93\xae\"";

  EXPECT_EQ(record(update), recorded);

  const auto stored = row(id);
  EXPECT_EQ(stored.status, DeliveryStatus::failed);
  EXPECT_EQ(stored.attempts, 3);
  EXPECT_EQ(stored.failure_code, "no_such_card");
  EXPECT_EQ(stored.failure_detail, update.failure_detail);
  EXPECT_EQ(stored.finished_at, now());
}

TEST_P(JobStoreConformance, A_cancelled_job_is_final) {
  const auto id = plant();
  const auto task = take_one();

  EXPECT_EQ(record(cancelled(task)), recorded);
  EXPECT_EQ(row(id).status, DeliveryStatus::cancelled);
  EXPECT_EQ(row(id).finished_at, now());
}

TEST_P(JobStoreConformance, Pending_again_a_job_forgets_its_dispatch_and_keeps_what_it_did) {
  const auto id = plant(serial("customer-1"));
  const auto task = take_one();
  auto progress = attempt_of(task);
  progress.checkpoint = "page 7";
  touch(progress);
  auto update = retried(task, seconds(5));
  update.snoozes = 2;
  update.interruptions = 1;
  update.deaths = 1;
  clock_.advance(seconds(2));

  EXPECT_EQ(record(update), recorded);

  const auto stored = row(id);
  EXPECT_EQ(stored.status, DeliveryStatus::pending);
  EXPECT_EQ(stored.attempts, 1);
  EXPECT_EQ(stored.snoozes, 2);
  EXPECT_EQ(stored.interruptions, 1);
  EXPECT_EQ(stored.deaths, 1);
  EXPECT_EQ(stored.available_at, now() + seconds(5));
  EXPECT_EQ(stored.dispatched_at, std::nullopt);
  EXPECT_EQ(stored.delivery_timeout_at, std::nullopt);
  EXPECT_EQ(stored.worker, std::nullopt);
  EXPECT_EQ(stored.serial_slot, std::nullopt);
  EXPECT_EQ(stored.finished_at, std::nullopt);
  EXPECT_EQ(stored.checkpoint, "page 7");
  EXPECT_EQ(stored.failure_code, "card_server_down");
  EXPECT_EQ(stored.dispatch_id, task.dispatch_id) << "to tell a repetition from a late result";
  EXPECT_EQ(stored.result, "retry");
}

TEST_P(JobStoreConformance, JT_17_an_interrupted_job_is_due_at_once) {
  const auto id = plant();
  const auto task = take_one();
  auto update = ended(task, DeliveryStatus::pending, "interrupted");
  update.interruptions = 1;
  record(update);

  const auto again = take_one();

  EXPECT_EQ(again.job.delivery_id, id);
  EXPECT_EQ(again.job.attempts, 0);
  EXPECT_EQ(again.job.interruptions, 1);
}

TEST_P(JobStoreConformance, F132_the_same_result_twice_is_a_repetition) {
  plant_many(4);
  const auto tasks = take().tasks;
  ASSERT_THAT(tasks, SizeIs(4));
  const std::vector<JobUpdate> updates = {completed(tasks[0]), failed(tasks[1]),
                                          cancelled(tasks[2]), retried(tasks[3], hours(1))};

  EXPECT_THAT(record_all(updates), Each(recorded));
  EXPECT_THAT(record_all(updates), Each(repeated));
  EXPECT_EQ(row(tasks[3].job.delivery_id).attempts, 1) << "one attempt was used, not two";
}

TEST_P(JobStoreConformance, F132_another_result_is_a_conflict_and_the_first_stays) {
  plant_many(2);
  const auto tasks = take().tasks;
  ASSERT_THAT(tasks, SizeIs(2));
  record_all({completed(tasks[0]), retried(tasks[1], hours(1))});

  EXPECT_THAT(record_all({failed(tasks[0]), completed(tasks[1])}), Each(conflict));

  EXPECT_EQ(row(tasks[0].job.delivery_id).status, DeliveryStatus::completed);
  EXPECT_EQ(row(tasks[0].job.delivery_id).failure_code, "");
  EXPECT_EQ(row(tasks[1].job.delivery_id).status, DeliveryStatus::pending);
}

TEST_P(JobStoreConformance, F131_a_late_result_of_an_earlier_dispatch_changes_nothing) {
  const auto id = plant();
  const auto first = take_one();
  clock_.advance(seconds(11));
  auto timed_out = retried(first, milliseconds(0));
  timed_out.result = "timed_out";
  record(timed_out);
  const auto second = take_one();

  EXPECT_EQ(record(completed(first)), stale);
  EXPECT_EQ(row(id).status, DeliveryStatus::dispatched);
  EXPECT_EQ(row(id).dispatch_id, second.dispatch_id);
  EXPECT_EQ(record(completed(second)), recorded);
  EXPECT_EQ(record(completed(first)), stale);
  EXPECT_EQ(row(id).dispatch_id, second.dispatch_id);
}

TEST_P(JobStoreConformance, Results_of_unknown_deliveries_are_stale) {
  plant();
  auto task = take_one();
  task.job.delivery_id = DeliveryId(fresh_uuid());

  EXPECT_EQ(record(completed(task)), stale);
}

TEST_P(JobStoreConformance, A_result_for_a_job_that_waits_is_stale) {
  const auto id = plant();
  Task task;
  task.job.delivery_id = id;
  task.dispatch_id = DispatchId(fresh_uuid());

  EXPECT_EQ(record(completed(task)), stale);
  EXPECT_EQ(row(id).status, DeliveryStatus::pending);
}

TEST_P(JobStoreConformance, F136_a_result_after_a_cancelled_retry_is_told) {
  const auto id = plant();
  const auto task = take_one();
  record(retried(task, hours(1)));
  harness_->cancel_job(id, now());

  EXPECT_EQ(record(completed(task)), conflict);
  EXPECT_EQ(row(id).status, DeliveryStatus::cancelled);
}

TEST_P(JobStoreConformance, F136_a_job_that_is_to_be_cancelled_does_not_wait_again) {
  const auto id = plant();
  const auto task = take_one();
  harness_->cancel_job(id, now());

  EXPECT_EQ(record(retried(task, seconds(5))), RecordAnswer::cancel_requested);
  EXPECT_EQ(row(id).status, DeliveryStatus::dispatched);
  EXPECT_TRUE(row(id).cancel_requested);

  EXPECT_EQ(record(cancelled(task)), recorded);
  EXPECT_EQ(row(id).status, DeliveryStatus::cancelled);
}

TEST_P(JobStoreConformance, F136_a_completion_wins_over_a_cancel_request) {
  const auto id = plant();
  const auto task = take_one();
  harness_->cancel_job(id, now());

  EXPECT_EQ(record(completed(task)), recorded);
  EXPECT_EQ(row(id).status, DeliveryStatus::completed);
}

TEST_P(JobStoreConformance, Answers_of_a_mixed_batch_are_in_the_order_of_the_updates) {
  plant_many(5);
  const auto tasks = take().tasks;
  ASSERT_THAT(tasks, SizeIs(5));
  auto unknown = completed(tasks[4]);
  unknown.dispatch_id = DispatchId(fresh_uuid());
  record_all({completed(tasks[1]), completed(tasks[3])});

  const auto answers = record_all({completed(tasks[4]), unknown, completed(tasks[3]),
                                   completed(tasks[0]), failed(tasks[1]), failed(tasks[2])});

  EXPECT_THAT(answers, ElementsAre(recorded, stale, repeated, recorded, conflict, recorded));
  EXPECT_EQ(row(tasks[2].job.delivery_id).status, DeliveryStatus::failed);
}

TEST_P(JobStoreConformance, Of_one_dispatch_in_a_batch_the_first_result_counts) {
  const auto id = plant();
  const auto task = take_one();

  const auto answers = record_all({completed(task), failed(task), completed(task)});

  EXPECT_THAT(answers, ElementsAre(recorded, conflict, repeated));
  EXPECT_EQ(row(id).status, DeliveryStatus::completed);
}

TEST_P(JobStoreConformance, Of_several_dispatches_in_a_batch_only_the_current_one_counts) {
  const auto id = plant();
  const auto first = take_one();
  record(retried(first, milliseconds(0)));
  const auto second = take_one();

  EXPECT_THAT(record_all({completed(first), completed(second)}), ElementsAre(stale, recorded));
  EXPECT_EQ(row(id).dispatch_id, second.dispatch_id);
}

TEST_P(JobStoreConformance, A_large_batch_is_recorded_whole) {
  constexpr std::size_t jobs = 500;
  plant_many(jobs);
  std::vector<JobUpdate> updates;
  for (const auto& task : take(jobs).tasks)
    updates.push_back(completed(task));
  ASSERT_THAT(updates, SizeIs(jobs));

  EXPECT_THAT(record_all(updates), Each(recorded));
}

TEST_P(JobStoreConformance, A_text_that_no_column_could_hold_does_not_stop_the_others) {
  plant_many(2);
  const auto tasks = take().tasks;
  ASSERT_THAT(tasks, SizeIs(2));
  auto update = failed(tasks[0]);
  update.failure_detail = std::string("half a character: \xd0, and a \0", 30);

  EXPECT_THAT(record_all({update, completed(tasks[1])}), Each(recorded));
  EXPECT_EQ(row(tasks[0].job.delivery_id).status, DeliveryStatus::failed);
  EXPECT_EQ(row(tasks[1].job.delivery_id).status, DeliveryStatus::completed);
  EXPECT_EQ(record(update), repeated);
}

// Failures

TEST_P(JobStoreConformance, A_record_in_a_locked_database_gives_up_and_can_be_repeated) {
  plant();
  const auto task = take_one();
  auto lock = harness_->lock_database();
  if (lock == nullptr) GTEST_SKIP() << "the database cannot be locked here";

  const auto refused =
      jobs_->record({{completed(task)}, now()}, Deadline::after(milliseconds(200)));

  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.error().code == ErrorCode::timeout || refused.error().code == ErrorCode::busy)
      << describe(refused.error());
  EXPECT_EQ(refused.error().disposition, Disposition::retry);
  lock.reset();
  EXPECT_EQ(record(completed(task)), recorded);
}

TEST_P(JobStoreConformance, After_a_lost_connection_an_end_can_be_recorded) {
  plant();
  const auto task = take_one();
  if (!harness_->lose_connections()) GTEST_SKIP() << "connections cannot be ended here";

  const auto first = jobs_->record({{completed(task)}, now()}, soon());

  if (!first.ok()) {
    EXPECT_EQ(first.error().disposition, Disposition::retry) << describe(first.error());
    EXPECT_EQ(record(completed(task)), recorded);
  }
  EXPECT_EQ(row(task.job.delivery_id).status, DeliveryStatus::completed);
}

TEST_P(JobStoreConformance, A_passed_deadline_changes_nothing) {
  const auto id = plant();
  auto request = take_request();
  const auto lock = harness_->lock_database();
  if (lock == nullptr) GTEST_SKIP() << "the database cannot be locked here";

  EXPECT_FALSE(jobs_->take(request, Deadline::after(milliseconds(0))).ok());
  EXPECT_EQ(row(id).status, DeliveryStatus::pending);
}

}  // namespace
}  // namespace postrider::testing
