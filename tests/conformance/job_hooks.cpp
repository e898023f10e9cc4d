// What every store does with what an end brings along: the failure joins the history of the job and
// the events are written, exactly if the end is recorded.

#include <algorithm>

#include <gmock/gmock.h>

#include "conformance/job_operations.hpp"
#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr auto pending = DeliveryStatus::pending;
constexpr auto failed = DeliveryStatus::failed;
constexpr auto completed = DeliveryStatus::completed;

const Operator janitor{"ann", "disk"};
const Aggregate some_order{"order", "17"};

NewEvent told(std::string type) {
  NewEvent event;
  event.type = std::move(type);
  event.aggregate = some_order;
  event.payload = R"({"code":"no_such_card"})";
  event.headers = {{"causation-id", "x"}};
  return event;
}

/// What uses an attempt.
void fails_with(JobUpdate& update, std::string code) {
  ++update.attempts;
  update.keeps_failure = true;
  update.failure_code = std::move(code);
  update.failure_detail = "card 'gone'";
}

std::vector<int> attempts_of(const JobDetail& job) {
  std::vector<int> attempts;
  for (const auto& failure : job.failures)
    attempts.push_back(failure.attempt);
  return attempts;
}

}  // namespace

std::vector<ClaimedEvent> JobOperationsConformance::unrouted() {
  const auto store = harness_->open_store();
  ClaimRequest request;
  for (std::int32_t i = 0; i < store->traits().partitions; ++i)
    request.partitions.emplace_back(i);
  request.limit = 1000;
  request.bytes = 1U << 20U;
  return value_of(store->claim(request, soon())).events;
}

std::vector<std::string> JobOperationsConformance::unrouted_types() {
  std::vector<std::string> types;
  for (const auto& claimed : unrouted())
    types.push_back(claimed.event->type);
  return types;
}

RecordAnswer JobOperationsConformance::fail_once() {
  return record(take_one(), pending, [](auto& update) { fails_with(update, "down"); });
}

// Events

TEST_P(JobOperationsConformance, J_22_an_event_of_an_end_is_written_with_it_as_it_was_given) {
  enqueue([](auto& request) { request.event.aggregate = some_order; });
  const auto task = take_one();

  EXPECT_EQ(record(task, failed,
                   [](auto& update) {
                     fails_with(update, "no_such_card");
                     update.events = {told("shipping.died"), told("shipping.failed")};
                   }),
            RecordAnswer::recorded);

  const auto events = unrouted();
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_THAT(unrouted_types(), ElementsAre("shipping.died", "shipping.failed"));
  const auto& event = *events[1].event;
  EXPECT_EQ(events[1].malformed, "");
  EXPECT_EQ(event.aggregate, some_order);
  EXPECT_EQ(event.payload, told("").payload);
  EXPECT_EQ(event.content_type, "application/json");
  EXPECT_EQ(event.headers, told("").headers);
  EXPECT_GT(event.seq, task.job.event_seq) << "it stands behind the event of its job";
  EXPECT_NE(event.id, events[0].event->id);
}

TEST_P(JobOperationsConformance, J_22_a_completion_and_a_retry_bring_their_events_too) {
  enqueue();
  record(take_one(), pending, [](auto& update) {
    fails_with(update, "down");
    update.events = {told("shipping.retried")};
  });
  record(take_one(), completed, [](auto& update) { update.events = {told("shipping.completed")}; });

  EXPECT_THAT(unrouted_types(), ElementsAre("shipping.retried", "shipping.completed"));
}

TEST_P(JobOperationsConformance, J_22_an_end_that_is_repeated_stale_or_in_conflict_brings_nothing) {
  const auto id = enqueue();
  const auto first = take_one();
  const auto fail_with_event = [](auto& update) {
    fails_with(update, "down");
    update.events = {told("shipping.retried")};
  };
  ASSERT_EQ(record(first, pending, fail_with_event), RecordAnswer::recorded);

  EXPECT_EQ(record(first, pending, fail_with_event), RecordAnswer::repeated);
  EXPECT_EQ(record(first, failed, fail_with_event), RecordAnswer::conflict);
  const auto second = take_one();
  EXPECT_EQ(record(first, failed, fail_with_event), RecordAnswer::stale);
  cancel(id);
  EXPECT_EQ(record(second, pending, fail_with_event), RecordAnswer::cancel_requested);

  EXPECT_THAT(unrouted_types(), ElementsAre("shipping.retried"));
  EXPECT_THAT(attempts_of(show(id)), ElementsAre(1));
}

TEST_P(JobOperationsConformance, Of_a_batch_only_the_ends_that_are_recorded_bring_anything) {
  enqueue();
  enqueue();
  enqueue();
  const auto tasks = take();
  ASSERT_THAT(tasks, SizeIs(3));
  ASSERT_EQ(record(tasks[1], completed), RecordAnswer::recorded);
  std::vector<JobUpdate> updates;
  for (const auto& task : tasks) {
    JobUpdate update;
    update.delivery_id = task.job.delivery_id;
    update.dispatch_id = task.dispatch_id;
    update.status = failed;
    update.result = "fail";
    fails_with(update, "down");
    update.events = {told("shipping.failed")};
    updates.push_back(update);
  }
  updates[2].keeps_failure = false;
  updates[2].events.clear();

  const auto answers = value_of(jobs_->record({updates, now()}, soon()));

  EXPECT_THAT(answers,
              ElementsAre(RecordAnswer::recorded, RecordAnswer::conflict, RecordAnswer::recorded));
  EXPECT_THAT(unrouted_types(), ElementsAre("shipping.failed"));
  EXPECT_THAT(show(tasks[0].job.delivery_id).failures, SizeIs(1));
  EXPECT_THAT(show(tasks[1].job.delivery_id).failures, IsEmpty());
  EXPECT_THAT(show(tasks[2].job.delivery_id).failures, IsEmpty());
}

TEST_P(JobOperationsConformance, A_record_that_fails_leaves_neither_end_nor_failure_nor_event) {
  const auto id = enqueue();
  const auto other = enqueue();
  const auto tasks = take();
  ASSERT_THAT(tasks, SizeIs(2));
  const auto taken = EventId(fresh_uuid());
  auto first = told("order.placed");
  first.id = taken;
  value_of(harness_->open_store()->add(std::vector{first}, soon()));
  std::vector<JobUpdate> updates;
  for (const auto& task : tasks) {
    JobUpdate update;
    update.delivery_id = task.job.delivery_id;
    update.dispatch_id = task.dispatch_id;
    update.status = failed;
    update.result = "fail";
    fails_with(update, "down");
    update.events = {told("shipping.failed")};
    updates.push_back(update);
  }
  updates[1].events.push_back(first);

  const auto refused = jobs_->record({updates, now()}, soon());

  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::already_exists) << describe(refused.error());
  EXPECT_THAT(unrouted_types(), ElementsAre("order.placed"));
  for (const auto& job : {show(id), show(other)}) {
    EXPECT_EQ(job.delivery.status, DeliveryStatus::dispatched);
    EXPECT_THAT(job.failures, IsEmpty());
  }
  updates[1].events.pop_back();
  EXPECT_THAT(value_of(jobs_->record({updates, now()}, soon())),
              ElementsAre(RecordAnswer::recorded, RecordAnswer::recorded));
  EXPECT_THAT(unrouted_types(), SizeIs(3));
}

// The history of failures

TEST_P(JobOperationsConformance, J_21_a_failure_joins_the_history_with_who_ran_it) {
  const auto id = enqueue();
  const auto first = take_one();
  const auto worker = worker_.id;
  record(first, pending, [&](auto& update) {
    fails_with(update, "card_server_down");
    update.worker = worker;
  });
  clock_.advance(seconds(2));
  const auto second = take_one();
  record(second, failed, [](auto& update) { fails_with(update, "no_such_card"); });

  const auto job = show(id);

  EXPECT_THAT(
      job.failures,
      ElementsAre(JobFailure{first.dispatch_id, 1, now() - seconds(2), "card_server_down",
                             "card 'gone'", worker},
                  JobFailure{second.dispatch_id, 2, now(), "no_such_card", "card 'gone'", {}}));
  EXPECT_EQ(job.delivery.failure_code, "no_such_card");
}

TEST_P(JobOperationsConformance, J_21_an_end_that_is_no_failure_joins_no_history) {
  const auto id = enqueue();
  record(take_one(), pending, [](auto& update) { ++update.snoozes; });
  record(take_one(), completed);

  EXPECT_THAT(show(id).failures, IsEmpty());
}

TEST_P(JobOperationsConformance, J_21_the_latest_failures_stay_and_those_of_other_jobs_too) {
  const auto other = enqueue();
  fail_once();
  cancel(other);
  const auto id = enqueue([](auto& request) {
    request.retry_delays.assign(JobFailure::most_kept + 3, milliseconds(1));
  });
  for (int i = 0; i < JobFailure::most_kept; ++i)
    fail_once();
  EXPECT_THAT(show(id).failures, SizeIs(JobFailure::most_kept));
  fail_once();
  fail_once();

  EXPECT_THAT(attempts_of(show(id)), ElementsAre(3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_THAT(attempts_of(show(other)), ElementsAre(1));
}

TEST_P(JobOperationsConformance,
       A_text_that_no_column_could_hold_is_kept_in_the_history_as_in_the_row) {
  const auto id = enqueue();
  record(take_one(), failed, [](auto& update) {
    fails_with(update, "handler_error");
    update.failure_detail = "half a character: \xd0.";
  });

  const auto job = show(id);
  ASSERT_THAT(job.failures, SizeIs(1));
  EXPECT_EQ(job.failures[0].detail, job.delivery.failure_detail);
}

TEST_P(JobOperationsConformance, The_next_generation_of_a_dead_job_begins_its_own_history) {
  const auto id = enqueue([](auto& request) { request.policy.hooks.failed_event = "ship.failed"; });
  record(take_one(), failed, [](auto& update) { fails_with(update, "down"); });
  DeadFilter dead;
  dead.ids = {id};
  value_of(harness_->open_operations()->dead_retry(dead, janitor, now(), soon()));

  const auto task = take_one();

  EXPECT_NE(task.job.delivery_id, id);
  EXPECT_THAT(show(task.job.delivery_id).failures, IsEmpty());
  EXPECT_THAT(show(id).failures, SizeIs(1));
  ASSERT_NE(task.job.hooks, nullptr) << "the policy is the same";
  EXPECT_EQ(task.job.hooks->hooks.failed_event, "ship.failed");
}

TEST_P(JobOperationsConformance, The_history_goes_with_its_job) {
  const auto id = enqueue();
  fail_once();
  record(take_one(), completed);
  ASSERT_THAT(show(id).failures, SizeIs(1));
  clock_.advance(hours(48));

  PurgeRequest request;
  request.older_than = hours(24);
  request.rows = 100;
  request.now = now();
  EXPECT_EQ(value_of(harness_->open_purger()->purge(request, std::nullopt, soon())).rows, 1);

  EXPECT_EQ(value_of(operations_->job(id, soon())), std::nullopt);
  EXPECT_EQ(harness_->stored_failures(), 0);
}

// Workers that have ended

TEST_P(JobOperationsConformance, Workers_that_have_ended_go_by_their_age_and_those_that_live_stay) {
  start_worker();
  beat(WorkerState::stopped);
  start_worker();
  enqueue();
  const auto holder = start_worker();
  take_one();
  clock_.advance(hours(1));
  ASSERT_THAT(value_of(jobs_->lost({seconds(30), 10, now()}, soon())).died, SizeIs(2));
  clock_.advance(hours(24));
  const auto alive = start_worker();
  PurgeRequest request;
  request.kept = Kept::workers;
  request.older_than = hours(48);
  request.now = now();
  const auto purger = harness_->open_purger();
  EXPECT_EQ(value_of(purger->purge(request, std::nullopt, soon())).rows, 0) << "too young";
  request.older_than = hours(24);
  request.rows = 1;
  request.dry_run = true;
  EXPECT_EQ(value_of(purger->purge(request, std::nullopt, soon())).rows, 2);
  request.dry_run = false;

  const auto first = value_of(purger->purge(request, janitor, soon()));
  EXPECT_EQ(first.rows, 1);
  EXPECT_TRUE(first.more);
  EXPECT_EQ(value_of(purger->purge(request, janitor, soon())).rows, 1);
  EXPECT_EQ(value_of(purger->purge(request, janitor, soon())).rows, 0);

  std::vector<WorkerId> left;
  for (const auto& worker : value_of(operations_->workers(true, now(), soon())))
    left.push_back(worker.info.id);
  EXPECT_THAT(left, UnorderedElementsAre(alive, holder))
      << "how the attempt of the dead one ends depends on its row";
}

// The snapshot of the policy

TEST_P(JobOperationsConformance,
       A_task_has_the_hooks_of_its_job_and_what_they_take_from_the_event) {
  const JobHooks hooks{"ship.done", "ship.retried", "ship.failed", "ship.died"};
  const auto id = enqueue([&](auto& request) {
    request.policy.hooks = hooks;
    request.event.aggregate = some_order;
    request.event.headers = {{std::string(JobHooks::depth_header), "3"}};
  });
  EXPECT_EQ(show(id).hooks, hooks);

  const auto task = take_one();

  ASSERT_NE(task.job.hooks, nullptr);
  EXPECT_EQ(task.job.hooks->hooks, hooks);
  EXPECT_EQ(task.job.hooks->event_type, "order.placed");
  EXPECT_EQ(task.job.hooks->aggregate, some_order);
  EXPECT_EQ(task.job.hooks->depth, 3);
}

TEST_P(JobOperationsConformance, A_lost_attempt_has_them_too) {
  const JobHooks hooks{"", "", "", "ship.died"};
  enqueue([&](auto& request) {
    request.policy.hooks = hooks;
    request.event.aggregate = some_order;
    request.event.headers = {{std::string(JobHooks::depth_header), "3"}};
  });
  enqueue();
  ASSERT_THAT(take(), SizeIs(2));
  clock_.advance(hours(1));

  const auto lost = value_of(jobs_->lost({seconds(30), 10, now()}, soon())).attempts;

  ASSERT_THAT(lost, SizeIs(2));
  const auto with_hooks =
      std::find_if(lost.begin(), lost.end(), [](const auto& attempt) { return attempt.job.hooks; });
  ASSERT_NE(with_hooks, lost.end());
  EXPECT_EQ(with_hooks->job.hooks->hooks, hooks);
  EXPECT_EQ(with_hooks->job.hooks->event_type, "order.placed");
  EXPECT_EQ(with_hooks->job.hooks->aggregate, some_order);
  EXPECT_EQ(with_hooks->job.hooks->depth, 3);
  EXPECT_EQ(std::count_if(lost.begin(), lost.end(),
                          [](const auto& attempt) { return attempt.job.hooks != nullptr; }),
            1);
}

TEST_P(JobOperationsConformance, A_job_without_hooks_has_none) {
  const auto id = enqueue();
  EXPECT_EQ(take_one().job.hooks, nullptr);
  EXPECT_TRUE(show(id).hooks.empty());
}

}  // namespace postrider::testing
