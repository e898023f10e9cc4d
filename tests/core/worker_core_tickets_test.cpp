// The worker and its source of tasks: what is asked of the store, run, acknowledged and given back.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "core/worker_script.hpp"

namespace postrider::core {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using worker_action::Acknowledge;
using worker_action::CancelSource;
using worker_action::CloseSource;
using worker_action::Done;
using worker_action::OpenSource;
using worker_action::Record;
using worker_action::StartTickets;
using worker_action::Take;
using Kind = StartAnswer::Kind;
using Status = DeliveryStatus;

WorkerOptions only_tickets() {
  auto options = four_slots();
  options.queues.clear();
  return options;
}

class TicketScript : public WorkerScript {
 public:
  explicit TicketScript(WorkerOptions options = only_tickets(), bool can_kill = true)
      : WorkerScript(std::move(options), can_kill) {}

  /// Up to the open source.
  void begin_with_source() {
    give(worker_input::Begin{true});
    beat();
    open();
  }
  void open() {
    (void)take<OpenSource>();
    give(worker_input::SourceOpened{});
    ++connection_;
    tag_ = 0;
  }
  Ticket ticket(std::uint64_t number) {
    return {delivery_numbered(number), dispatch_numbered(number), "ship_order",
            TicketTag{connection_, ++tag_}, false};
  }
  /// Tags ascend from 1 with each connection.
  void offer(const std::vector<std::uint64_t>& numbers) {
    TicketBatch batch;
    for (const auto number : numbers)
      batch.tickets.push_back(ticket(number));
    give(worker_input::Offered{std::move(batch)});
  }
  /// Answers the requests that are open, all with `kind`.
  std::vector<StartRequest> answer_starts(Kind kind = Kind::started) {
    const auto requests = take<StartTickets>().requests;
    worker_input::TicketsStarted started;
    for (const auto& request : requests)
      started.answers.push_back(answer(request, kind));
    give(std::move(started));
    return requests;
  }
  void fail_starts(Disposition disposition = Disposition::in_doubt) {
    give(worker_input::TicketsStarted{{}, error(disposition)});
  }
  [[nodiscard]] worker_input::TicketsStarted::Answer answer(const StartRequest& request,
                                                            Kind kind) const {
    StartAnswer start;
    start.kind = kind;
    if (kind == Kind::started) {
      auto task = task_numbered(0);
      task.job.delivery_id = request.delivery_id;
      task.dispatch_id = request.dispatch_id;
      start.task = std::move(task);
    }
    return {std::move(start), clock_.steady()};
  }
  void run_tickets(const std::vector<std::uint64_t>& numbers) {
    begin_with_source();
    offer(numbers);
    while (wants<StartTickets>())
      answer_starts();
    EXPECT_EQ(starts(), numbers.size());
  }
  void lose_connection(Disposition disposition = Disposition::retry) {
    give(worker_input::SourceFailed{error(disposition)});
  }
  /// Numbers of the tags that are acknowledged; of the present connection only.
  std::vector<std::uint64_t> acknowledged() {
    std::vector<std::uint64_t> numbers;
    while (wants<Acknowledge>()) {
      for (const auto& tag : take<Acknowledge>().tags) {
        EXPECT_EQ(tag.connection, connection_);
        numbers.push_back(tag.number);
      }
    }
    return numbers;
  }

  std::uint64_t connection_ = 0;
  std::uint64_t tag_ = 0;
};

// ---- taking up

TEST(WorkerTickets, The_source_is_opened_after_the_first_heartbeat_with_a_bounded_prefetch) {
  TicketScript script;
  script.give(worker_input::Begin{true});
  EXPECT_FALSE(script.wants<OpenSource>());
  script.beat();
  EXPECT_EQ(script.take<OpenSource>().prefetch, 5U) << "four slots and one spare";
  EXPECT_FALSE(script.wants<Take>()) << "it serves no queue";
}

TEST(WorkerTickets, A_ticket_is_started_in_the_store_and_run_as_any_job) {
  TicketScript script;
  script.begin_with_source();
  script.offer({1});
  const auto requests = script.answer_starts();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].worker, script.core_.info().id);
  EXPECT_EQ(requests[0].delivery_id, delivery_numbered(1));
  EXPECT_EQ(requests[0].dispatch_id, dispatch_numbered(1));
  EXPECT_EQ(requests[0].job, "ship_order");
  EXPECT_FALSE(requests[0].again);
  EXPECT_EQ(script.starts(), 1U);
}

TEST(WorkerTickets, R_204_a_task_is_acknowledged_once_its_outcome_is_recorded_and_not_before) {
  TicketScript script;
  script.run_tickets({1, 2});
  script.end(1);
  EXPECT_TRUE(script.acknowledged().empty()) << "nothing is recorded yet";
  EXPECT_EQ(script.record()[0].status, Status::completed);
  EXPECT_THAT(script.acknowledged(), ElementsAre(1U));
  script.end(2, JobOutcome::retry("again"));
  EXPECT_EQ(script.record()[0].status, Status::pending);
  EXPECT_THAT(script.acknowledged(), ElementsAre(2U)) << "the outbox retries, not the broker";
}

TEST(WorkerTickets, What_cannot_be_recorded_yet_stays_unacknowledged) {
  TicketScript script;
  script.run_tickets({1});
  script.end(1);
  (void)script.take<Record>();
  script.fail_record();
  EXPECT_TRUE(script.acknowledged().empty());
  script.advance(seconds(20));
  script.settle_beats();
  script.record(RecordAnswer::repeated);
  EXPECT_THAT(script.acknowledged(), ElementsAre(1U));
}

TEST(WorkerTickets, A_result_that_came_too_late_is_acknowledged_too) {
  TicketScript script;
  script.run_tickets({1});
  script.end(1);
  script.record(RecordAnswer::stale);
  EXPECT_THAT(script.acknowledged(), ElementsAre(1U));
}

TEST(WorkerTickets, An_end_that_becomes_a_cancellation_is_acknowledged_with_that) {
  TicketScript script;
  script.run_tickets({1});
  script.end(1, JobOutcome::retry("again"));
  script.record(RecordAnswer::cancel_requested);
  EXPECT_TRUE(script.acknowledged().empty());
  EXPECT_EQ(script.record()[0].status, Status::cancelled);
  EXPECT_THAT(script.acknowledged(), ElementsAre(1U));
}

TEST(WorkerTickets, An_end_that_the_store_refuses_for_good_holds_no_ticket) {
  TicketScript script;
  script.run_tickets({1});
  script.end(1);
  (void)script.take<Record>();
  script.fail_record(Disposition::reject);
  EXPECT_THAT(script.acknowledged(), ElementsAre(1U));
}

TEST(WorkerTickets, A_deadline_that_passed_in_the_queue_of_the_broker_is_recorded_unrun) {
  TicketScript script;
  script.begin_with_source();
  script.offer({1});
  const auto requests = script.take<StartTickets>().requests;
  worker_input::TicketsStarted started;
  started.answers.push_back(script.answer(requests[0], Kind::started));
  started.answers[0].start.task->until_timeout = milliseconds(0);
  script.give(std::move(started));
  EXPECT_EQ(script.starts(), 0U);
  EXPECT_EQ(script.record()[0].failure_code, job_code::timed_out);
  EXPECT_THAT(script.acknowledged(), ElementsAre(1U));
}

TEST(WorkerTickets, R_179_a_stale_task_is_acknowledged_unrun_with_a_warning_that_names_both_ids) {
  TicketScript script;
  script.begin_with_source();
  script.offer({1});
  script.answer_starts(Kind::stale);
  EXPECT_THAT(script.acknowledged(), ElementsAre(1U));
  EXPECT_EQ(script.starts(), 0U);
  const auto told = script.told(NoticeKind::task_stale);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].delivery_id, delivery_numbered(1));
  EXPECT_EQ(told[0].dispatch_id, dispatch_numbered(1));
}

TEST(WorkerTickets, R_180_a_task_of_another_job_is_acknowledged_unrun_with_a_warning) {
  TicketScript script;
  script.begin_with_source();
  script.offer({1});
  script.answer_starts(Kind::wrong_job);
  EXPECT_THAT(script.acknowledged(), ElementsAre(1U));
  EXPECT_EQ(script.starts(), 0U);
  ASSERT_EQ(script.told(NoticeKind::task_refused).size(), 1U);
  EXPECT_EQ(script.told(NoticeKind::task_refused)[0].job, "ship_order");
}

TEST(WorkerTickets, A_copy_of_what_another_worker_runs_is_acknowledged_without_a_warning) {
  TicketScript script;
  script.begin_with_source();
  script.offer({1});
  script.answer_starts(Kind::taken);
  EXPECT_THAT(script.acknowledged(), ElementsAre(1U));
  EXPECT_EQ(script.starts(), 0U);
  EXPECT_EQ(script.told(NoticeKind::task_repeated).size(), 1U);
}

TEST(WorkerTickets, Messages_that_are_no_tasks_are_told_with_their_number_and_reason) {
  TicketScript script;
  script.begin_with_source();
  script.give(worker_input::Offered{{{}, {{"its body is no JSON object", 3}}}});
  const auto told = script.told(NoticeKind::task_refused);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0].detail, HasSubstr("3 messages"));
  EXPECT_THAT(told[0].detail, HasSubstr("its body is no JSON object"));
}

// ---- slots

TEST(WorkerTickets, No_more_are_taken_up_than_there_are_slots) {
  TicketScript script;
  script.run_tickets({1, 2, 3, 4});
  script.offer({5});
  EXPECT_FALSE(script.wants<StartTickets>());
  EXPECT_EQ(script.core_.waiting_tickets(), 1U);
  script.end(2);
  EXPECT_EQ(script.answer_starts()[0].dispatch_id, dispatch_numbered(5));
}

TEST(WorkerTickets, Queues_and_tickets_share_the_slots_while_both_have_work) {
  TicketScript script(four_slots());
  script.give(worker_input::Begin{true});
  script.beat();
  script.answer_take({});
  script.open();
  script.give(
      {worker_input::Woken{},
       worker_input::Offered{{{script.ticket(1), script.ticket(2), script.ticket(3)}, {}}}});
  EXPECT_EQ(script.take<Take>().request.limit, 2U);
  EXPECT_EQ(script.take<StartTickets>().requests.size(), 2U);
}

TEST(WorkerTickets, The_last_slot_goes_to_queues_and_tickets_in_turns) {
  auto options = four_slots();
  options.concurrency = 1;
  TicketScript script(options);
  script.give(worker_input::Begin{true});
  script.beat();
  script.answer_take({task_numbered(100)});
  script.open();
  script.offer({1});
  (void)script.starts();
  std::string order;
  for (std::uint64_t job = 100; job < 106; ++job) {
    script.give(
        {worker_input::Woken{}, worker_input::Ended{dispatch_numbered(job), JobOutcome::done()}});
    for (int i = 0; i < 10 && script.starts() == 0; ++i) {
      if (script.wants<Take>()) {
        order += 'q';
        script.answer_take({task_numbered(job + 1)});
      } else if (script.wants<StartTickets>()) {
        order += 't';
        const auto requests = script.take<StartTickets>().requests;
        worker_input::TicketsStarted started;
        started.answers.push_back(script.answer(requests[0], Kind::started));
        started.answers[0].start.task->dispatch_id = dispatch_numbered(job + 1);
        script.give(std::move(started));
        script.offer({200 + job});
      } else if (script.wants<Record>()) {
        script.record();
      }
    }
  }
  EXPECT_THAT(order, ::testing::AnyOf("tqtqtq", "qtqtqt"));
}

TEST(WorkerTickets, While_the_database_is_out_of_reach_nothing_is_started_or_acknowledged) {
  TicketScript script;
  script.begin_with_source();
  script.cut_off_for(seconds(16));
  script.offer({1, 2, 3, 4, 5});
  EXPECT_FALSE(script.wants<StartTickets>());
  EXPECT_TRUE(script.acknowledged().empty());
  EXPECT_EQ(script.core_.waiting_tickets(), 5U);
  script.advance(seconds(5));
  script.beat();
  EXPECT_EQ(script.answer_starts().size(), 4U) << "as many as there are slots";
}

// ---- answers that are lost, and workers that are

TEST(WorkerTickets, A_start_whose_answer_was_lost_is_asked_for_again_as_such) {
  TicketScript script;
  script.begin_with_source();
  script.offer({1, 2});
  (void)script.take<StartTickets>();
  script.fail_starts();
  EXPECT_EQ(script.told(NoticeKind::store_failed).size(), 1U);
  EXPECT_FALSE(script.wants<StartTickets>()) << "not in a circle";
  script.advance(seconds(1));
  const auto requests = script.answer_starts();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_TRUE(requests[0].again);
  EXPECT_FALSE(requests[1].again);
  EXPECT_EQ(script.starts(), 2U);
  EXPECT_EQ(script.told(NoticeKind::store_recovered).size(), 1U);
}

TEST(WorkerTickets, A_worker_that_was_declared_dead_acknowledges_nothing_and_starts_as_another) {
  TicketScript script;
  script.begin_with_source();
  const auto before = script.core_.info().id;
  script.offer({1});
  script.answer_starts(Kind::worker_gone);
  EXPECT_TRUE(script.acknowledged().empty()) << "nothing was said of the task";
  EXPECT_FALSE(script.wants<StartTickets>());
  HeartbeatAnswer dead;
  dead.known = false;
  (void)script.take<worker_action::Beat>();
  script.give(script.alive(dead));
  script.beat();
  const auto requests = script.answer_starts();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_NE(requests[0].worker, before);
  EXPECT_EQ(script.starts(), 1U);
}

TEST(WorkerTickets, What_others_have_taken_over_is_acknowledged_when_it_has_ended_here) {
  TicketScript script;
  script.run_tickets({1});
  script.advance(seconds(5));
  (void)script.take<worker_action::Beat>();
  HeartbeatAnswer answer;
  answer.lost = {dispatch_numbered(1)};
  script.give(script.alive(answer));
  EXPECT_TRUE(script.acknowledged().empty());
  script.end(1, killed);
  EXPECT_FALSE(script.wants<Record>());
  EXPECT_THAT(script.acknowledged(), ElementsAre(1U));
}

// ---- the connection

TEST(WorkerTickets, A_lost_connection_is_opened_again_and_the_jobs_run_on) {
  TicketScript script;
  script.run_tickets({1});
  script.lose_connection();
  EXPECT_EQ(script.told(NoticeKind::source_failed).size(), 1U);
  EXPECT_FALSE(script.wants<worker_action::RequestStop>());
  EXPECT_FALSE(script.wants<OpenSource>()) << "not in a circle";
  script.advance(seconds(1));
  script.open();
  EXPECT_EQ(script.told(NoticeKind::source_recovered).size(), 1U);
  script.end(1);
  EXPECT_EQ(script.record()[0].status, Status::completed);
  EXPECT_TRUE(script.acknowledged().empty()) << "its tag belongs to the connection that is gone";
}

TEST(WorkerTickets, A_task_that_comes_again_while_it_runs_is_not_run_twice) {
  TicketScript script;
  script.run_tickets({1});
  script.lose_connection();
  script.advance(seconds(1));
  script.open();
  script.offer({1});
  EXPECT_FALSE(script.wants<StartTickets>());
  script.end(1);
  script.record();
  EXPECT_THAT(script.acknowledged(), ElementsAre(1U)) << "under its new tag";
}

TEST(WorkerTickets, Waiting_tickets_are_dropped_with_their_connection) {
  TicketScript script;
  script.run_tickets({1, 2, 3, 4});
  script.offer({5});
  script.lose_connection();
  EXPECT_EQ(script.core_.waiting_tickets(), 0U);
  script.end(1);
  EXPECT_FALSE(script.wants<StartTickets>());
}

TEST(WorkerTickets, An_outage_of_the_broker_is_told_once_and_its_tries_become_rare) {
  TicketScript script;
  script.begin_with_source();
  script.lose_connection();
  int tries = 0;
  for (int second = 0; second < 600; ++second) {
    script.advance(seconds(1));
    script.settle();
    if (!script.wants<OpenSource>()) continue;
    (void)script.take<OpenSource>();
    script.lose_connection();
    ++tries;
  }
  EXPECT_EQ(script.told(NoticeKind::source_failed).size(), 1U);
  EXPECT_GE(tries, 60) << "at least every 10 s";
  EXPECT_LE(tries, 150);
}

TEST(WorkerTickets, A_source_that_never_worked_and_that_a_person_has_to_mend_ends_the_worker) {
  TicketScript script;
  script.give(worker_input::Begin{true});
  script.beat();
  (void)script.take<OpenSource>();
  script.lose_connection(Disposition::stop);
  script.beat_until_done();
  const auto done = script.take<Done>();
  ASSERT_TRUE(done.error);
  EXPECT_EQ(done.error->message, "planted");
}

TEST(WorkerTickets, A_source_that_has_worked_is_waited_for_whatever_it_says) {
  TicketScript script;
  script.begin_with_source();
  script.lose_connection(Disposition::stop);
  script.advance(seconds(1));
  EXPECT_TRUE(script.wants<OpenSource>());
}

// ---- stopping

TEST(WorkerTickets, A_stop_asks_for_no_more_and_gives_back_what_waits_by_closing) {
  TicketScript script;
  script.run_tickets({1, 2, 3, 4});
  script.offer({5});
  script.give(worker_input::Stop{});
  (void)script.take<CancelSource>();
  EXPECT_EQ(script.core_.waiting_tickets(), 0U);
  for (std::uint64_t number = 1; number <= 4; ++number)
    script.end(number);
  EXPECT_FALSE(script.wants<CloseSource>()) << "their ends are not recorded yet";
  while (script.wants<Record>())
    script.record();
  EXPECT_THAT(script.acknowledged(), ::testing::UnorderedElementsAre(1U, 2U, 3U, 4U));
  (void)script.take<CloseSource>();
  script.beat_until_done();
  const auto report = script.take<Done>().report;
  EXPECT_EQ(report.completed, 4U);
  EXPECT_TRUE(report.clean());
}

TEST(WorkerTickets, An_idle_worker_closes_its_source_at_once) {
  TicketScript script;
  script.begin_with_source();
  script.give(worker_input::Stop{});
  EXPECT_TRUE(script.wants<CloseSource>());
  script.beat_until_done();
  EXPECT_TRUE(script.wants<Done>());
}

TEST(WorkerTickets,
     JT_15_a_job_that_is_released_by_a_stop_is_recorded_first_and_then_acknowledged) {
  TicketScript script;
  script.run_tickets({1});
  script.give(worker_input::Stop{});
  script.give(worker_input::Stop{});
  script.end(1, terminated);
  EXPECT_TRUE(script.acknowledged().empty());
  const auto update = script.record()[0];
  EXPECT_EQ(update.status, Status::pending);
  EXPECT_EQ(update.attempts, 0);
  EXPECT_THAT(script.acknowledged(), ElementsAre(1U));
  EXPECT_EQ(script.told(NoticeKind::job_released).size(), 1U);
}

TEST(WorkerTickets, What_a_start_brings_after_the_stop_is_still_run_within_the_grace) {
  TicketScript script;
  script.begin_with_source();
  script.offer({1});
  const auto requests = script.take<StartTickets>().requests;
  script.give(worker_input::Stop{});
  EXPECT_FALSE(script.wants<CloseSource>());
  script.give(worker_input::TicketsStarted{{script.answer(requests[0], Kind::started)}, {}});
  EXPECT_EQ(script.starts(), 1U);
}

TEST(WorkerTickets, A_stop_finds_out_what_a_lost_answer_has_started_and_gives_it_back) {
  TicketScript script;
  script.begin_with_source();
  script.offer({1, 2});
  (void)script.take<StartTickets>();
  script.give(worker_input::Stop{});
  script.give(worker_input::Stop{});
  script.fail_starts();
  script.advance(seconds(1));
  const auto requests = script.answer_starts();
  ASSERT_EQ(requests.size(), 1U) << "the other one was never asked for";
  EXPECT_TRUE(requests[0].again);
  EXPECT_EQ(script.starts(), 0U);
  EXPECT_EQ(script.record()[0].status, Status::pending);
  EXPECT_THAT(script.acknowledged(), ElementsAre(1U));
  script.beat_until_done();
  EXPECT_EQ(script.take<Done>().report.released, 1U);
}

TEST(WorkerTickets, A_stop_does_not_wait_for_ever_for_what_may_have_been_started) {
  TicketScript script;
  script.begin_with_source();
  script.offer({1});
  (void)script.take<StartTickets>();
  script.give(worker_input::Stop{});
  script.fail_starts();
  for (int second = 0; second < 60 && !script.wants<Done>(); ++second) {
    script.advance(seconds(1));
    script.settle_beats();
    if (!script.wants<StartTickets>()) continue;
    (void)script.take<StartTickets>();
    script.fail_starts();
  }
  EXPECT_EQ(script.take<Done>().report.unrecorded, 1U);
}

TEST(WorkerTickets, A_source_that_opens_after_the_stop_is_closed_again) {
  TicketScript script;
  script.give(worker_input::Begin{true});
  script.beat();
  (void)script.take<OpenSource>();
  script.give(worker_input::Stop{});
  script.give(worker_input::SourceOpened{});
  EXPECT_TRUE(script.wants<CloseSource>());
}

}  // namespace
}  // namespace postrider::core
