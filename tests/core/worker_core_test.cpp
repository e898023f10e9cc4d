// Each rule of the worker, one step at a time.
#include "core/worker_core.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/worker_script.hpp"

namespace postrider::core {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using worker_action::Beat;
using worker_action::Done;
using worker_action::Kill;
using worker_action::Record;
using worker_action::RequestStop;
using worker_action::Start;
using worker_action::Take;
using Status = DeliveryStatus;

// ---- heartbeats

TEST(WorkerCore, Nothing_is_taken_before_the_first_heartbeat_is_answered) {
  WorkerScript script;
  script.give(worker_input::Begin{});
  EXPECT_FALSE(script.wants<Take>());
  const auto beat = script.take<Beat>();
  EXPECT_EQ(beat.request.worker.state, WorkerState::running);
  EXPECT_TRUE(beat.request.running.empty());
  script.give(script.alive());
  const auto take = script.take<Take>();
  EXPECT_EQ(take.request.worker, beat.request.worker.id);
  EXPECT_EQ(take.request.limit, 4U);
}

TEST(WorkerCore, J_14_a_heartbeat_a_period_names_what_runs) {
  WorkerScript script;
  script.run({1, 2});
  script.advance(seconds(4));
  EXPECT_FALSE(script.wants<Beat>());
  script.advance(seconds(1));
  const auto beat = script.take<Beat>();
  EXPECT_EQ(beat.request.running, (std::vector{dispatch_numbered(1), dispatch_numbered(2)}));
}

TEST(WorkerCore, J_14_a_worker_whose_heartbeats_failed_for_three_periods_takes_nothing) {
  WorkerScript script;
  script.begin();
  script.answer_take({});
  for (int second = 0; second < 14; ++second) {
    script.advance(seconds(1));
    script.settle_takes();
    if (script.wants<Beat>()) script.fail_beat();
  }
  EXPECT_EQ(script.told(NoticeKind::heartbeat_failed).size(), 1U) << "one line per change";
  script.advance(seconds(1));
  EXPECT_FALSE(script.wants<Take>());
  script.advance(seconds(3));
  EXPECT_FALSE(script.wants<Take>());
  script.advance(seconds(5));
  script.beat();
  EXPECT_TRUE(script.wants<Take>()) << "heard of again, it goes on";
  EXPECT_EQ(script.told(NoticeKind::heartbeat_recovered).size(), 1U);
}

TEST(WorkerCore, J_14_cut_off_for_long_it_ends_its_jobs_before_others_may_start_them) {
  WorkerScript script;
  script.run({1, 2});
  script.cut_off_for(milliseconds(19'999));
  EXPECT_FALSE(script.wants<RequestStop>());
  script.cut_off_for(milliseconds(1));  // dead_after - two heartbeats
  EXPECT_TRUE(script.asked<RequestStop>(1));
  EXPECT_TRUE(script.asked<RequestStop>(2));
  EXPECT_EQ(script.told(NoticeKind::worker_isolated).size(), 1U);
  script.end(1, JobOutcome::done());
  EXPECT_EQ(script.record()[0].status, Status::completed) << "if it can be recorded, it is";
  script.cut_off_for(seconds(5));
  EXPECT_TRUE(script.asked<Kill>(2)) << "a period before dead_after";
  script.end(2, killed);
  const auto updates = script.record();
  EXPECT_EQ(updates[0].status, Status::pending);
  EXPECT_EQ(updates[0].attempts, 0) << "an outage of the database uses no attempt";
  EXPECT_EQ(updates[0].deaths, 0);
  EXPECT_FALSE(script.wants<Take>());
}

TEST(WorkerCore, A_heartbeat_counts_from_when_it_was_asked_for) {
  WorkerScript script;
  script.run({1});
  script.advance(seconds(5));
  script.settle_takes();
  (void)script.take<Beat>();
  const auto asked_at = script.clock_.steady();
  script.clock_.advance(seconds(9));  // the answer is slow
  script.give(worker_input::Beaten{{}, asked_at});
  script.cut_off_for(milliseconds(10'999));
  EXPECT_FALSE(script.wants<RequestStop>());
  script.cut_off_for(milliseconds(1));
  EXPECT_TRUE(script.asked<RequestStop>(1));
}

TEST(WorkerCore, A_worker_that_was_declared_dead_starts_over_as_another_one) {
  WorkerScript script;
  script.run({1, 2});
  const auto before = script.core_.info().id;
  script.advance(seconds(5));
  script.settle_takes();
  (void)script.take<Beat>();
  HeartbeatAnswer dead;
  dead.known = false;
  script.give(script.alive(dead));
  EXPECT_TRUE(script.asked<RequestStop>(1));
  EXPECT_TRUE(script.asked<Kill>(1));
  EXPECT_TRUE(script.asked<Kill>(2));
  EXPECT_EQ(script.told(NoticeKind::worker_declared_dead).size(), 1U);
  const auto beat = script.take<Beat>();
  EXPECT_NE(beat.request.worker.id, before);
  EXPECT_TRUE(beat.request.running.empty()) << "they belong to the dead one";
  EXPECT_FALSE(script.wants<Take>());
  script.give(script.alive());
  script.end(1, killed);
  EXPECT_FALSE(script.wants<Record>()) << "others record what becomes of it";
  script.give(worker_input::Woken{});
  EXPECT_EQ(script.take<Take>().request.worker, beat.request.worker.id);
}

TEST(WorkerCore, A_store_that_knows_no_start_at_all_is_not_asked_in_a_circle) {
  WorkerScript script;
  script.give(worker_input::Begin{});
  HeartbeatAnswer dead;
  dead.known = false;
  for (int i = 0; i < 3; ++i) {
    (void)script.take<Beat>();
    script.give(script.alive(dead));
    EXPECT_FALSE(script.wants<Beat>());
    script.advance(seconds(5));
  }
}

TEST(WorkerCore, What_was_taken_for_a_start_that_is_dead_now_is_not_run) {
  WorkerScript script;
  script.begin();
  (void)script.take<Take>();
  script.advance(seconds(5));
  (void)script.take<Beat>();
  HeartbeatAnswer dead;
  dead.known = false;
  script.give(script.alive(dead));
  script.give(script.taken({task_numbered(1)}));
  EXPECT_FALSE(script.wants<Start>());
  EXPECT_EQ(script.record(RecordAnswer::stale)[0].failure_code, job_code::interrupted);
}

// ---- taking

TEST(WorkerCore, Slots_that_are_taken_are_not_asked_for) {
  WorkerScript script;
  script.run({1, 2, 3});
  script.advance(seconds(1));
  EXPECT_EQ(script.take<Take>().request.limit, 1U);
  script.give(script.taken({task_numbered(4)}, true));
  EXPECT_EQ(script.starts(), 1U);
  script.advance(seconds(1));
  EXPECT_FALSE(script.wants<Take>()) << "nothing is free";
  script.end(2);
  (void)script.record();
  EXPECT_EQ(script.take<Take>().request.limit, 1U) << "at once, as there was more";
}

TEST(WorkerCore, An_empty_queue_is_looked_at_when_woken_or_due_or_after_the_poll) {
  WorkerScript script;
  script.begin();
  script.answer_take({});
  EXPECT_FALSE(script.wants<Take>());
  EXPECT_EQ(script.core_.wake_at(), script.clock_.steady() + seconds(1));
  script.give(worker_input::Woken{});
  (void)script.take<Take>();
  TaskBatch later;
  later.next_in = milliseconds(250);
  script.give(worker_input::Taken{later, script.clock_.steady()});
  EXPECT_EQ(script.core_.wake_at(), script.clock_.steady() + milliseconds(250));
  script.advance(milliseconds(250));
  EXPECT_TRUE(script.wants<Take>());
}

TEST(WorkerCore, A_recorded_end_may_let_the_next_of_its_serial_key_go) {
  WorkerScript script;
  script.run({1});
  script.end(1);
  EXPECT_FALSE(script.wants<Take>());
  (void)script.record();
  EXPECT_TRUE(script.wants<Take>());
}

TEST(WorkerCore, A_take_that_failed_is_repeated_after_a_growing_wait_and_told_once) {
  WorkerScript script;
  script.begin();
  milliseconds waited{0};
  for (int failure = 0; failure < 12; ++failure) {
    (void)script.take<Take>();
    script.fail_take();
    EXPECT_FALSE(script.wants<Take>());
    const auto before = script.clock_.steady();
    while (!script.wants<Take>() && script.clock_.steady() < before + minutes(1)) {
      script.advance(milliseconds(10));
      script.settle_beats();
    }
    waited = std::chrono::duration_cast<milliseconds>(script.clock_.steady() - before);
    EXPECT_LE(waited, seconds(10) + milliseconds(10));
  }
  EXPECT_GE(waited, seconds(5));
  EXPECT_EQ(script.told(NoticeKind::store_failed).size(), 1U);
  script.answer_take({});
  EXPECT_EQ(script.told(NoticeKind::store_recovered).size(), 1U);
}

TEST(WorkerCore, A_failure_for_which_a_person_has_to_act_ends_the_worker_with_it) {
  WorkerScript script;
  script.run({1});
  script.give(worker_input::Woken{});
  (void)script.take<Take>();
  script.fail_take(Disposition::stop);
  script.settle();
  EXPECT_FALSE(script.wants<Done>()) << "what runs is finished";
  script.end(1);
  script.advance(seconds(10));
  (void)script.record();
  script.beat_until_done();
  const auto done = script.take<Done>();
  ASSERT_TRUE(done.error);
  EXPECT_EQ(done.error->message, "planted");
  EXPECT_EQ(done.report.completed, 1U);
}

TEST(WorkerCore, What_cannot_be_run_ends_without_a_start) {
  WorkerScript script;
  script.begin();
  auto malformed = task_numbered(1);
  malformed.malformed = "the event's headers are no JSON";
  auto late = task_numbered(2);
  late.until_timeout = milliseconds(0);
  auto cancelled = task_numbered(3);
  cancelled.job.cancel_requested = true;
  script.answer_take({malformed, late, cancelled});
  EXPECT_EQ(script.starts(), 0U);
  const auto updates = script.record();
  ASSERT_EQ(updates.size(), 3U);
  EXPECT_EQ(updates[0].status, Status::failed);
  EXPECT_EQ(updates[0].failure_code, job_code::undecodable);
  EXPECT_EQ(updates[1].failure_code, job_code::timed_out);
  EXPECT_EQ(updates[2].status, Status::cancelled);
}

TEST(WorkerCore, A_store_that_gives_more_than_asked_for_gets_the_rest_back) {
  WorkerScript script;
  script.begin();
  std::vector<Task> tasks;
  for (std::uint64_t i = 1; i <= 6; ++i)
    tasks.push_back(task_numbered(i));
  script.answer_take(tasks);
  EXPECT_EQ(script.starts(), 4U);
  EXPECT_EQ(script.record().size(), 2U);
}

// ---- recording

TEST(WorkerCore, Every_end_is_counted_and_told_once_it_is_recorded) {
  struct Row {
    AttemptEnd end;
    NoticeKind kind;
    std::size_t WorkerReport::*count;
  };
  const std::vector<Row> rows = {
      {JobOutcome::done(), NoticeKind::job_completed, &WorkerReport::completed},
      {JobOutcome::retry("x"), NoticeKind::retry_scheduled, &WorkerReport::retried},
      {JobOutcome::fail("x"), NoticeKind::delivery_failed, &WorkerReport::failed},
      {JobOutcome::snooze(seconds(1)), NoticeKind::job_snoozed, &WorkerReport::snoozed},
      {JobOutcome::cancelled(), NoticeKind::job_cancelled, &WorkerReport::cancelled},
      {WorkerDeath{11, std::nullopt, false}, NoticeKind::worker_died, &WorkerReport::deaths},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(to_string(row.kind));
    WorkerScript script;
    script.run({1});
    script.end(1, row.end);
    EXPECT_TRUE(script.notices_.empty()) << "nothing is told before it is true";
    (void)script.record();
    ASSERT_EQ(script.notices_.size(), 1U);
    const auto& notice = script.notices_[0];
    EXPECT_EQ(notice.kind, row.kind);
    EXPECT_EQ(notice.delivery_id, delivery_numbered(1));
    EXPECT_EQ(notice.dispatch_id, dispatch_numbered(1));
    EXPECT_EQ(notice.job, "ship_order");
    EXPECT_EQ(notice.queue, "shipping");
    EXPECT_EQ(notice.event_type, "order.placed");
    EXPECT_EQ(script.stop_and_report().*row.count, 1U);
  }
}

TEST(WorkerCore, R_210_R_213_a_death_is_an_error_with_ids_and_numbers_only) {
  WorkerScript script;
  script.run({1});
  script.end(1, WorkerDeath{11, std::nullopt, false});
  EXPECT_EQ(script.record()[0].failure_code, job_code::worker_died);
  const auto notices = script.told(NoticeKind::worker_died);
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(severity_of(notices[0].kind), Severity::error);
  EXPECT_EQ(notices[0].detail, "signal 11");
  EXPECT_EQ(script.notices_.size(), 1U) << "one failure is told once";
}

TEST(WorkerCore, Ends_that_come_while_the_store_is_busy_are_recorded_together) {
  WorkerScript script;
  script.run({1, 2, 3, 4});
  script.end(1);
  script.end(2);
  script.end(3);
  EXPECT_EQ(script.record().size(), 1U);
  (void)script.take<Take>();  // its turn
  EXPECT_FALSE(script.wants<Record>());
  script.give(script.taken({}));
  EXPECT_EQ(script.record().size(), 2U);
}

TEST(WorkerCore, Ends_that_arrive_together_are_recorded_together) {
  WorkerScript script;
  script.run({1, 2, 3});
  std::vector<WorkerInput> inputs;
  for (const std::uint64_t number : {1U, 2U, 3U})
    inputs.emplace_back(worker_input::Ended{dispatch_numbered(number), JobOutcome::done()});
  script.give(std::move(inputs));
  EXPECT_EQ(script.record().size(), 3U);
}

TEST(WorkerCore, Taking_and_recording_take_turns_while_both_have_work) {
  WorkerScript script;
  script.begin();
  std::string calls;
  std::uint64_t next = 1;
  for (int i = 0; i < 20; ++i) {
    if (script.wants<Take>()) {
      calls += 't';
      script.answer_take({task_numbered(next)}, true);
      script.end(next++);
    } else {
      calls += 'r';
      (void)script.record();
    }
    EXPECT_LE(script.core_.running() + script.core_.unrecorded(), 8U);
  }
  EXPECT_EQ(calls.find("tt"), std::string::npos) << calls;
  EXPECT_EQ(calls.find("rr"), std::string::npos) << calls;
}

TEST(WorkerCore, F134_ends_whose_recording_failed_are_recorded_again_until_they_are) {
  WorkerScript script;
  script.run({1, 2});
  script.end(1);
  for (int failure = 0; failure < 20; ++failure) {
    EXPECT_EQ(script.take<Record>().request.updates[0].dispatch_id, dispatch_numbered(1));
    script.fail_record(Disposition::in_doubt);
    EXPECT_FALSE(script.wants<Record>());
    script.wait_until_recording();
    EXPECT_FALSE(script.wants<Take>()) << "nothing is taken while ends cannot be recorded";
  }
  (void)script.record(RecordAnswer::repeated);
  EXPECT_EQ(script.told(NoticeKind::job_completed).size(), 1U);
  EXPECT_EQ(script.told(NoticeKind::store_failed).size(), 1U);
}

TEST(WorkerCore, One_end_that_is_never_accepted_does_not_hold_up_the_others) {
  WorkerScript script;
  script.run({1, 2, 3});
  std::vector<WorkerInput> inputs;
  for (const std::uint64_t number : {1U, 2U, 3U})
    inputs.emplace_back(worker_input::Ended{dispatch_numbered(number), JobOutcome::done()});
  script.give(std::move(inputs));
  EXPECT_EQ(script.take<Record>().request.updates.size(), 3U);
  script.fail_record(Disposition::reject);
  for (const std::uint64_t number : {1U, 2U, 3U}) {
    if (script.wants<Take>()) script.answer_take({});
    const auto updates = script.take<Record>().request.updates;
    ASSERT_EQ(updates.size(), 1U);
    EXPECT_EQ(updates[0].dispatch_id, dispatch_numbered(number));
    if (number == 2) {
      script.fail_record(Disposition::reject);
    } else {
      script.give(worker_input::Recorded{{RecordAnswer::recorded}});
    }
  }
  const auto report = script.stop_and_report();
  EXPECT_EQ(report.completed, 2U);
  EXPECT_EQ(report.unrecorded, 1U);
}

TEST(WorkerCore, R_188_a_stale_result_is_one_warning_with_both_ids) {
  WorkerScript script;
  script.run({1});
  script.end(1);
  (void)script.record(RecordAnswer::stale);
  const auto notices = script.told(NoticeKind::result_stale);
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(severity_of(notices[0].kind), Severity::warning);
  EXPECT_EQ(notices[0].delivery_id, delivery_numbered(1));
  EXPECT_EQ(notices[0].dispatch_id, dispatch_numbered(1));
  EXPECT_EQ(script.stop_and_report().stale, 1U);
}

TEST(WorkerCore, F136_a_job_that_may_not_wait_again_is_recorded_as_cancelled) {
  WorkerScript script;
  script.run({1});
  script.end(1, JobOutcome::retry("smtp_busy"));
  EXPECT_EQ(script.record(RecordAnswer::cancel_requested)[0].status, DeliveryStatus::pending);
  const auto update = script.record()[0];
  EXPECT_EQ(update.dispatch_id, dispatch_numbered(1));
  EXPECT_EQ(update.status, DeliveryStatus::cancelled);
  EXPECT_EQ(script.told(NoticeKind::job_cancelled).size(), 1U);
  EXPECT_EQ(script.stop_and_report().cancelled, 1U);
}

TEST(WorkerCore, F132_two_different_results_of_one_dispatch_are_an_error) {
  WorkerScript script;
  script.run({1});
  script.end(1);
  (void)script.record(RecordAnswer::conflict);
  ASSERT_EQ(script.told(NoticeKind::result_conflict).size(), 1U);
  EXPECT_EQ(severity_of(NoticeKind::result_conflict), Severity::error);
}

TEST(WorkerCore, R_212_a_second_report_of_one_attempt_changes_nothing) {
  WorkerScript script;
  script.run({1});
  script.end(1);
  script.end(1, JobOutcome::fail("x"));
  EXPECT_EQ(script.record().size(), 1U);
  EXPECT_FALSE(script.wants<Record>());
}

// ---- deadlines

TEST(WorkerCore, F126_at_its_deadline_an_attempt_is_recorded_asked_to_stop_and_then_killed) {
  WorkerScript script;
  script.run({1});
  script.live_for(minutes(10) - milliseconds(1));
  EXPECT_FALSE(script.wants<RequestStop>());
  script.advance(milliseconds(1));
  script.settle_beats();
  EXPECT_TRUE(script.asked<RequestStop>(1));
  const auto updates = script.record();
  EXPECT_EQ(updates[0].failure_code, job_code::timed_out);
  EXPECT_EQ(updates[0].status, Status::pending);
  EXPECT_EQ(updates[0].attempts, 1);
  EXPECT_EQ(script.core_.running(), 1U) << "its slot is not free";
  script.live_for(seconds(5));
  EXPECT_TRUE(script.asked<Kill>(1));
  script.end(1, killed);
  EXPECT_FALSE(script.wants<Record>()) << "killed by us, it is no dead worker";
  EXPECT_TRUE(script.told(NoticeKind::worker_died).empty());
  EXPECT_TRUE(script.told(NoticeKind::result_stale).empty());
}

TEST(WorkerCore, F131_a_late_result_changes_nothing_and_is_one_warning) {
  for (const bool answered_first : {true, false}) {
    WorkerScript script;
    script.run({1});
    script.live_for(minutes(10));
    if (answered_first) (void)script.record(RecordAnswer::stale);  // a relay saw the deadline, too
    script.end(1, JobOutcome::done());
    if (!answered_first) (void)script.record(RecordAnswer::stale);
    EXPECT_FALSE(script.wants<Record>());
    const auto notices = script.told(NoticeKind::result_stale);
    ASSERT_EQ(notices.size(), 1U);
    EXPECT_EQ(notices[0].dispatch_id, dispatch_numbered(1));
    EXPECT_EQ(script.stop_and_report().stale, 1U);
  }
}

TEST(WorkerCore, Deadlines_run_from_when_the_take_was_asked_for) {
  WorkerScript script;
  script.begin();
  (void)script.take<Take>();
  const auto asked_at = script.clock_.steady();
  script.clock_.advance(seconds(4));  // the answer is slow
  auto task = task_numbered(1);
  task.until_timeout = seconds(6);
  script.give(worker_input::Taken{{{task}, false, std::nullopt}, asked_at});
  EXPECT_EQ(script.starts(), 1U);
  script.advance(seconds(1));
  script.settle_beats();
  EXPECT_FALSE(script.wants<RequestStop>());
  script.advance(seconds(1));
  EXPECT_TRUE(script.asked<RequestStop>(1));
}

TEST(WorkerCore, J_13_an_extension_moves_the_deadline) {
  WorkerScript script;
  script.run({1});
  script.live_for(minutes(9));
  script.give(worker_input::Extended{dispatch_numbered(1), minutes(10), script.clock_.steady()});
  script.live_for(minutes(10) - milliseconds(1));
  EXPECT_FALSE(script.wants<RequestStop>());
  script.advance(milliseconds(1));
  EXPECT_TRUE(script.asked<RequestStop>(1));
}

TEST(WorkerCore, An_extension_of_what_is_over_changes_nothing) {
  WorkerScript script;
  script.run({1});
  script.live_for(minutes(10));
  (void)script.record();
  script.give(worker_input::Extended{dispatch_numbered(1), minutes(10), script.clock_.steady()});
  script.give(worker_input::Extended{dispatch_numbered(7), minutes(10), script.clock_.steady()});
  script.live_for(minutes(20));
  EXPECT_FALSE(script.wants<Record>());
}

TEST(WorkerCore, Who_cannot_kill_is_not_asked_to) {
  WorkerScript script(four_slots(), false);
  script.run({1});
  script.live_for(minutes(10));
  EXPECT_TRUE(script.asked<RequestStop>(1));
  script.live_for(minutes(10));
  EXPECT_FALSE(script.wants<Kill>());
}

// ---- cancelled and lost

TEST(WorkerCore, JT_18_a_cancelled_attempt_is_asked_to_stop_once_and_then_killed) {
  WorkerScript script;
  script.run({1, 2});
  script.advance(seconds(5));
  HeartbeatAnswer answer;
  answer.cancelled = {dispatch_numbered(1)};
  (void)script.take<Beat>();
  script.give(script.alive(answer));
  EXPECT_TRUE(script.asked<RequestStop>(1));
  script.settle();
  script.advance(milliseconds(4999));
  EXPECT_FALSE(script.wants<Kill>());
  script.advance(milliseconds(1));
  EXPECT_TRUE(script.asked<Kill>(1));
  (void)script.take<Beat>();
  script.give(script.alive(answer));
  EXPECT_FALSE(script.wants<RequestStop>()) << "once";
  script.end(1, killed);
  const auto updates = script.record();
  EXPECT_EQ(updates[0].status, Status::cancelled);
  EXPECT_EQ(updates[0].deaths, 0);
  EXPECT_TRUE(script.told(NoticeKind::worker_died).empty());
}

TEST(WorkerCore,
     What_was_asked_to_stop_by_a_person_is_not_asked_again_by_the_stop_or_its_deadline) {
  WorkerScript script(four_slots(), false);
  script.run({1, 2});
  script.advance(seconds(5));
  HeartbeatAnswer answer;
  answer.cancelled = {dispatch_numbered(1)};
  (void)script.take<Beat>();
  script.give(script.alive(answer));
  EXPECT_TRUE(script.asked<RequestStop>(1));
  script.give(worker_input::Stop{});
  script.give(worker_input::Stop{});
  EXPECT_FALSE(script.asked<RequestStop>(1));
  EXPECT_TRUE(script.asked<RequestStop>(2));
  WorkerScript longer;
  longer.run({1});
  longer.advance(seconds(5));
  (void)longer.take<Beat>();
  longer.give(longer.alive(answer));
  EXPECT_TRUE(longer.asked<RequestStop>(1));
  longer.live_for(minutes(10));
  EXPECT_FALSE(longer.asked<RequestStop>(1));
}

TEST(WorkerCore, F136_a_job_that_finished_before_it_saw_the_request_is_completed) {
  WorkerScript script;
  script.run({1, 2});
  HeartbeatAnswer answer;
  answer.cancelled = {dispatch_numbered(1), dispatch_numbered(2)};
  script.advance(seconds(5));
  (void)script.take<Beat>();
  script.give(script.alive(answer));
  script.settle();
  script.end(1, JobOutcome::done());
  EXPECT_EQ(script.record()[0].status, Status::completed);
  script.settle();
  script.end(2, JobOutcome::retry("interrupted_by_person"));
  EXPECT_EQ(script.record()[0].status, Status::cancelled);
}

TEST(WorkerCore, A_lost_attempt_is_ended_and_only_a_result_of_it_leaves_a_warning) {
  WorkerScript script;
  script.run({1, 2});
  script.advance(seconds(5));
  HeartbeatAnswer answer;
  answer.lost = {dispatch_numbered(1), dispatch_numbered(2)};
  (void)script.take<Beat>();
  script.give(script.alive(answer));
  EXPECT_TRUE(script.asked<RequestStop>(1));
  EXPECT_TRUE(script.asked<RequestStop>(2));
  script.settle();
  script.live_for(seconds(5));
  EXPECT_TRUE(script.asked<Kill>(1));
  EXPECT_TRUE(script.asked<Kill>(2));
  script.end(1, JobOutcome::done());
  (void)script.record(RecordAnswer::stale);
  EXPECT_EQ(script.told(NoticeKind::result_stale).size(), 1U);
  script.settle();
  script.end(2, killed);
  EXPECT_FALSE(script.wants<Record>());
  script.live_for(minutes(20));
  EXPECT_FALSE(script.wants<Record>()) << "its deadline is not ours any more";
}

// ---- stopping

TEST(WorkerCore, J_18_an_idle_worker_stops_at_once_and_signs_off) {
  WorkerScript script;
  script.begin();
  script.answer_take({});
  script.give(worker_input::Stop{});
  EXPECT_EQ(script.take<Beat>().request.worker.state, WorkerState::stopped);
  EXPECT_FALSE(script.wants<Done>());
  script.give(script.alive());
  EXPECT_TRUE(script.take<Done>().report.clean());
  EXPECT_TRUE(script.core_.done());
  EXPECT_FALSE(script.core_.wake_at());
}

TEST(WorkerCore, J_18_a_stop_waits_for_what_runs_and_takes_nothing) {
  WorkerScript script;
  script.run({1, 2});
  script.give(worker_input::Stop{});
  EXPECT_EQ(script.take<Beat>().request.worker.state, WorkerState::quiet) << "at once";
  script.give(script.alive());
  script.give(worker_input::Woken{});
  script.live_for(seconds(19));
  EXPECT_FALSE(script.wants<Take>());
  EXPECT_FALSE(script.wants<RequestStop>());
  script.end(1);
  (void)script.record();
  script.end(2, JobOutcome::retry("later"));
  (void)script.record();
  script.beat();
  const auto done = script.take<Done>();
  EXPECT_EQ(done.report.completed, 1U);
  EXPECT_EQ(done.report.retried, 1U) << "what ends by itself is recorded as it says";
  EXPECT_TRUE(done.report.clean());
}

TEST(WorkerCore, JT_15_a_job_longer_than_both_graces_is_killed_and_released) {
  WorkerScript script;
  script.run({1, 2, 3});
  script.give(worker_input::Stop{});
  script.live_for(seconds(20));
  EXPECT_TRUE(script.asked<RequestStop>(1));
  EXPECT_TRUE(script.asked<RequestStop>(2));
  EXPECT_TRUE(script.asked<RequestStop>(3));
  EXPECT_EQ(script.core_.info().state, WorkerState::stopping);
  script.end(2, terminated);
  EXPECT_EQ(script.record()[0].failure_code, job_code::interrupted) << "we ended it";
  script.live_for(seconds(5));
  EXPECT_TRUE(script.asked<Kill>(1));
  EXPECT_FALSE(script.wants<Record>()) << "nobody may start it while it is not gone";
  script.end(1, killed);
  const auto updates = script.record();
  EXPECT_EQ(updates[0].status, Status::pending);
  EXPECT_EQ(updates[0].attempts, 0);
  EXPECT_EQ(updates[0].available_in, milliseconds(0));
  EXPECT_TRUE(script.asked<Kill>(3));
  script.live_for(seconds(5));  // the kernel does not give it back
  EXPECT_EQ(script.record()[0].failure_code, job_code::interrupted);
  script.beat();
  const auto done = script.take<Done>();
  EXPECT_EQ(done.report.released, 3U);
  EXPECT_FALSE(done.report.clean());
  EXPECT_TRUE(script.told(NoticeKind::worker_died).empty());
}

TEST(WorkerCore, J_18_what_cannot_be_killed_is_released_after_the_hard_grace) {
  WorkerScript script(four_slots(), false);
  script.run({1});
  script.give(worker_input::Stop{});
  script.live_for(seconds(25));
  EXPECT_EQ(script.record()[0].failure_code, job_code::interrupted);
  EXPECT_FALSE(script.wants<Kill>());
  script.beat();
  EXPECT_EQ(script.take<Done>().report.released, 1U);
}

TEST(WorkerCore, J_18_the_second_stop_skips_to_the_request) {
  WorkerScript script;
  script.run({1});
  script.give(worker_input::Stop{});
  script.give(worker_input::Stop{});
  EXPECT_TRUE(script.asked<RequestStop>(1));
  script.give(worker_input::Stop{});
  EXPECT_FALSE(script.wants<Kill>()) << "a third one hurries nothing";
  script.live_for(seconds(5));
  EXPECT_TRUE(script.asked<Kill>(1));
}

TEST(WorkerCore, A_stop_that_an_attempt_reports_itself_is_recorded_as_it_says) {
  WorkerScript script;
  script.run({1, 2});
  script.give(worker_input::Stop{});
  script.give(worker_input::Stop{});
  script.end(1, JobOutcome::retry("stopped_halfway"));
  EXPECT_EQ(script.record()[0].attempts, 1);
  script.end(2, WorkerDeath{11, std::nullopt, false});
  EXPECT_EQ(script.record()[0].deaths, 1) << "another signal than ours is a death";
}

TEST(WorkerCore, J_18_who_obeys_the_stop_of_the_worker_is_given_back_and_not_cancelled) {
  WorkerScript script;
  script.run({1, 2});
  script.give(worker_input::Stop{});
  script.give(worker_input::Stop{});
  script.end(1, JobOutcome::cancelled());
  const auto released = script.record()[0];
  EXPECT_EQ(released.status, Status::pending);
  EXPECT_EQ(released.attempts, 0);
  EXPECT_EQ(released.interruptions, 1);
}

TEST(WorkerCore, An_attempt_that_obeys_at_its_deadline_has_no_late_result_to_warn_of) {
  WorkerScript script;
  script.run({1});
  script.live_for(minutes(10));
  EXPECT_TRUE(script.asked<RequestStop>(1));
  EXPECT_EQ(script.record()[0].failure_code, job_code::timed_out);
  script.end(1, JobOutcome::cancelled());
  EXPECT_TRUE(script.told(NoticeKind::result_stale).empty());
}

TEST(WorkerCore, What_a_take_brings_after_the_stop_is_run_while_there_is_grace) {
  WorkerScript script;
  script.begin();
  (void)script.take<Take>();
  script.give(worker_input::Stop{});
  script.beat();
  EXPECT_FALSE(script.wants<Done>());
  script.give(script.taken({task_numbered(1)}));
  EXPECT_EQ(script.starts(), 1U);
  script.end(1);
  (void)script.record();
  script.beat();
  EXPECT_EQ(script.take<Done>().report.completed, 1U);
}

TEST(WorkerCore, What_a_take_brings_after_the_grace_is_given_back_without_a_start) {
  WorkerScript script;
  script.begin();
  (void)script.take<Take>();
  script.give(worker_input::Stop{});
  script.give(worker_input::Stop{});
  script.give(script.taken({task_numbered(1)}));
  EXPECT_EQ(script.starts(), 0U);
  EXPECT_EQ(script.record()[0].attempts, 0);
  script.beat_until_done();
  EXPECT_EQ(script.take<Done>().report.released, 1U);
}

TEST(WorkerCore, A_stop_before_the_begin_ends_the_worker_before_it_did_anything) {
  WorkerScript script;
  script.give(worker_input::Stop{});
  script.give(worker_input::Begin{});
  EXPECT_TRUE(script.take<Done>().report.clean());
  EXPECT_TRUE(script.pending_.empty());
}

TEST(WorkerCore, A_stop_during_an_outage_ends_after_the_graces_and_counts_what_is_not_written) {
  WorkerScript script;
  script.run({1});
  script.end(1);
  script.give(worker_input::Stop{});
  const auto asked_at = script.clock_.steady();
  while (!script.wants<Done>() && script.clock_.steady() < asked_at + minutes(2)) {
    if (script.wants<Record>()) {
      (void)script.take<Record>();
      script.fail_record();
    }
    if (script.wants<Beat>()) script.fail_beat();
    if (!script.wants<Done>()) script.advance(milliseconds(100));
  }
  const auto done = script.take<Done>();
  EXPECT_EQ(done.report.unrecorded, 1U);
  EXPECT_FALSE(done.report.clean());
  EXPECT_GE(script.clock_.steady() - asked_at, seconds(25));
  EXPECT_LE(script.clock_.steady() - asked_at, seconds(26));
}

TEST(WorkerCore, A_second_stop_during_a_back_off_still_tries_to_record_at_its_end) {
  auto options = four_slots();
  options.hard_grace = seconds(1);
  WorkerScript script(options);
  script.run({1});
  script.end(1);
  for (int failure = 0; failure < 10; ++failure) {  // then it would wait for 5 s or more
    (void)script.take<Record>();
    script.fail_record();
    if (failure < 9) script.wait_until_recording();
  }
  script.give(worker_input::Stop{});
  script.give(worker_input::Stop{});
  script.live_for(milliseconds(999));
  EXPECT_FALSE(script.wants<Record>());
  script.live_for(milliseconds(1));
  EXPECT_EQ(script.record()[0].dispatch_id, dispatch_numbered(1));
  script.beat_until_done();
  EXPECT_TRUE(script.take<Done>().report.clean());
}

TEST(WorkerCore, A_worker_that_is_declared_dead_while_it_stops_kills_and_ends) {
  WorkerScript script;
  script.run({1});
  script.give(worker_input::Stop{});
  (void)script.take<Beat>();
  HeartbeatAnswer dead;
  dead.known = false;
  script.give(script.alive(dead));
  EXPECT_TRUE(script.asked<Kill>(1));
  EXPECT_FALSE(script.wants<Done>());
  script.end(1, killed);
  EXPECT_EQ(script.take<Done>().report.released, 0U);
  EXPECT_FALSE(script.wants<Beat>());
}

TEST(WorkerCore, A_deadline_during_the_stop_is_a_deadline) {
  WorkerScript script;
  script.begin();
  auto task = task_numbered(1);
  task.until_timeout = seconds(10);
  script.answer_take({task});
  (void)script.starts();
  script.give(worker_input::Stop{});
  script.live_for(seconds(10));
  EXPECT_TRUE(script.asked<RequestStop>(1));
  EXPECT_EQ(script.record()[0].failure_code, job_code::timed_out);
  script.live_for(seconds(5));
  EXPECT_TRUE(script.asked<Kill>(1));
  script.end(1, killed);
  script.beat_until_done();
  EXPECT_TRUE(script.take<Done>().report.clean());
}

TEST(WorkerCore, F6_after_a_long_freeze_the_timers_are_one_tick_and_no_burst) {
  WorkerScript script;
  script.run({1});
  script.advance(minutes(9));
  EXPECT_TRUE(script.asked<RequestStop>(1)) << "others may have started it";
  (void)script.take<Beat>();
  EXPECT_TRUE(script.pending_.empty());
  EXPECT_FALSE(script.wants<Take>());
}

}  // namespace
}  // namespace postrider::core
