// What a relay does for jobs: ending attempts that nobody else ends, and handing tasks to brokers.
#include "core/job_keeper.hpp"

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/testing/manual_clock.hpp>

namespace postrider::core {
namespace {

using std::chrono::seconds;

Uuid uuid(std::uint8_t number) {
  std::array<std::uint8_t, 16> bytes{};
  bytes[15] = number;
  return Uuid(bytes);
}

Job kept_job(std::uint8_t number) {
  Job job;
  job.delivery_id = DeliveryId(uuid(number));
  job.event_id = EventId(uuid(200));
  job.event_seq = Seq(number);
  job.route = "ship";
  job.job = "ship_order";
  job.queue = "shipping";
  job.retry_delays = {seconds(60)};
  return job;
}

DispatchId kept_dispatch(std::uint8_t number) {
  return DispatchId(uuid(static_cast<std::uint8_t>(100 + number)));
}

Task kept_task(std::uint8_t number) {
  Task task;
  task.job = kept_job(number);
  task.dispatch_id = kept_dispatch(number);
  return task;
}

Route broker_route(const std::string& name = "ship") {
  Route route;
  route.name = name;
  route.destination = "test:";
  route.window = 10;
  route.job = JobPolicy{};
  return route;
}

Error failure(Disposition disposition = Disposition::retry) {
  return {ErrorCode::unavailable, disposition, "planted", "test", ""};
}

/// A keeper, and a hand that answers it.
class Keeping {
 public:
  explicit Keeping(std::vector<Route> routes = {}) : keeper_({}, std::move(routes), *random_) {}

  void give(KeeperInput input) {
    for (auto& action : keeper_.step(std::move(input), clock_.steady())) {
      if (auto* notify = std::get_if<keeper_action::Notify>(&action)) {
        notices_.push_back(notify->notice);
      } else {
        pending_.push_back(std::move(action));
      }
    }
  }
  template <class Wanted>
  Wanted take() {
    for (auto action = pending_.begin(); action != pending_.end(); ++action) {
      if (auto* found = std::get_if<Wanted>(&*action)) {
        auto taken = std::move(*found);
        pending_.erase(action);
        return taken;
      }
    }
    ADD_FAILURE() << "the keeper did not ask for it";
    return {};
  }
  [[nodiscard]] bool is_idle() const { return pending_.empty(); }
  void begin(bool continuous = true) {
    give(keeper_input::Begin{continuous});
    (void)take<keeper_action::FindLost>();
  }
  void begin_with_nothing_lost(bool continuous = true) {
    begin(continuous);
    give(keeper_input::Found{});
  }
  /// A route's look for what is due, answered with these tasks.
  std::vector<Message> hand_out(std::vector<Task> tasks) {
    (void)take<keeper_action::HandOut>();
    give(keeper_input::HandedOut{{std::move(tasks), false, std::nullopt}});
    return take<keeper_action::Submit>().messages;
  }
  void answer(const Message& message, Outcome outcome) {
    give(keeper_input::Outcomes{{{message.attempt, std::move(outcome)}}});
  }
  JobUpdate only_update() {
    const auto updates = take<keeper_action::Record>().request.updates;
    EXPECT_EQ(updates.size(), 1U);
    return updates.empty() ? JobUpdate{} : updates.front();
  }
  void pass(milliseconds time) {
    clock_.advance(time);
    give(keeper_input::Tick{});
  }

  testing::ManualClock clock_;
  std::unique_ptr<Random> random_ = seeded_random(7);
  JobKeeper keeper_;
  std::deque<KeeperAction> pending_;
  std::vector<Notice> notices_;
};

LostBatch lost(bool worker_died, bool more = false) {
  LostBatch batch;
  batch.attempts.push_back({kept_job(1), kept_dispatch(1), worker_died, std::nullopt});
  batch.more = more;
  return batch;
}

TEST(JobKeeper, R_209_and_210_a_dead_workers_job_fails_and_is_told_as_an_error) {
  Keeping keeping;
  keeping.begin();
  keeping.give(keeper_input::Found{lost(true)});
  const auto update = keeping.only_update();
  EXPECT_EQ(update.status, DeliveryStatus::failed);
  EXPECT_EQ(update.failure_code, job_code::worker_died);
  EXPECT_FALSE(update.unless_started);
  keeping.give(keeper_input::Recorded{{RecordAnswer::recorded}});
  ASSERT_EQ(keeping.notices_.size(), 1U);
  EXPECT_EQ(keeping.notices_[0].kind, NoticeKind::worker_died);
  EXPECT_EQ(severity_of(keeping.notices_[0].kind), Severity::error);
  EXPECT_EQ(keeping.notices_[0].dispatch_id, kept_dispatch(1));
}

TEST(JobKeeper, R_200_an_overdue_attempt_goes_by_the_retry_branch) {
  Keeping keeping;
  keeping.begin();
  keeping.give(keeper_input::Found{lost(false)});
  const auto update = keeping.only_update();
  EXPECT_EQ(update.status, DeliveryStatus::pending);
  EXPECT_EQ(update.failure_code, job_code::timed_out);
  EXPECT_EQ(update.attempts, 1);
  EXPECT_EQ(update.available_in, seconds(60));
}

TEST(JobKeeper, JT_25_who_comes_second_says_nothing) {
  for (const auto answer : {RecordAnswer::stale, RecordAnswer::repeated, RecordAnswer::conflict}) {
    Keeping keeping;
    keeping.begin();
    keeping.give(keeper_input::Found{lost(true)});
    (void)keeping.only_update();
    keeping.give(keeper_input::Recorded{{answer}});
    EXPECT_TRUE(keeping.notices_.empty());
  }
}

TEST(JobKeeper, F136_an_overdue_job_that_a_person_wants_cancelled_is_cancelled) {
  Keeping keeping;
  keeping.begin();
  keeping.give(keeper_input::Found{lost(false)});
  (void)keeping.only_update();
  keeping.give(keeper_input::Recorded{{RecordAnswer::cancel_requested}});
  EXPECT_EQ(keeping.only_update().status, DeliveryStatus::cancelled);
  keeping.give(keeper_input::Recorded{{RecordAnswer::recorded}});
  ASSERT_EQ(keeping.notices_.size(), 1U);
  EXPECT_EQ(keeping.notices_[0].kind, NoticeKind::job_cancelled);
}

TEST(JobKeeper, it_looks_again_at_once_while_there_is_more_and_else_after_its_period) {
  Keeping keeping;
  keeping.begin();
  keeping.give(keeper_input::Found{lost(true, true)});
  (void)keeping.only_update();
  keeping.give(keeper_input::Recorded{{RecordAnswer::recorded}});
  (void)keeping.take<keeper_action::FindLost>();
  keeping.give(keeper_input::Found{});
  EXPECT_TRUE(keeping.is_idle());
  ASSERT_TRUE(keeping.keeper_.wake_at());
  EXPECT_EQ(*keeping.keeper_.wake_at(), keeping.clock_.steady() + seconds(1));
  keeping.pass(seconds(1));
  (void)keeping.take<keeper_action::FindLost>();
}

TEST(JobKeeper, a_pass_ends_when_it_has_looked_at_everything_once) {
  Keeping keeping({broker_route()});
  keeping.begin_with_nothing_lost(false);
  const auto messages = keeping.hand_out({kept_task(1)});
  EXPECT_TRUE(keeping.is_idle());  // the answer is awaited
  keeping.answer(messages.at(0), Outcome::confirmed());
  EXPECT_FALSE(keeping.take<keeper_action::Done>().error);
}

TEST(JobKeeper, R_174_a_task_carries_the_four_ids_and_nothing_of_the_event) {
  Keeping keeping({broker_route()});
  keeping.begin_with_nothing_lost();
  const auto messages = keeping.hand_out({kept_task(1)});
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].event->type, "ship_order");
  EXPECT_EQ(messages[0].dispatch_id, kept_dispatch(1));
  EXPECT_EQ(messages[0].event->payload,
            R"({"outbox_event_id":"00000000-0000-0000-0000-0000000000c8",)"
            R"("outbox_delivery_id":"00000000-0000-0000-0000-000000000001",)"
            R"("outbox_dispatch_id":"00000000-0000-0000-0000-000000000065",)"
            R"("outbox_last_attempt":false})");
}

TEST(JobKeeper, a_confirmed_task_is_a_workers_turn) {
  Keeping keeping({broker_route()});
  keeping.begin_with_nothing_lost();
  keeping.answer(keeping.hand_out({kept_task(1)}).at(0), Outcome::confirmed());
  EXPECT_TRUE(keeping.is_idle());
  EXPECT_EQ(keeping.keeper_.in_flight(), 0U);
}

TEST(JobKeeper, R_203_a_refused_hand_over_is_a_retry_of_that_delivery_alone_and_at_once) {
  for (const auto& outcome :
       {Outcome::refused("nack", ""), Outcome::rejected("unroutable", ""), Outcome::gone("")}) {
    Keeping keeping({broker_route()});
    keeping.begin_with_nothing_lost();
    const auto messages = keeping.hand_out({kept_task(1), kept_task(2)});
    keeping.answer(messages.at(1), Outcome::confirmed());
    keeping.answer(messages.at(0), outcome);
    const auto update = keeping.only_update();
    EXPECT_EQ(update.delivery_id, kept_job(1).delivery_id);
    EXPECT_EQ(update.status, DeliveryStatus::pending);
    EXPECT_EQ(update.attempts, 1);
    EXPECT_EQ(update.failure_code, job_code::send_refused);
    EXPECT_FALSE(update.unless_started);
  }
}

TEST(JobKeeper, an_outage_uses_no_attempt_and_pauses_the_route) {
  Keeping keeping({broker_route()});
  keeping.begin_with_nothing_lost();
  const auto messages = keeping.hand_out({kept_task(1)});
  keeping.answer(messages.at(0), Outcome::unavailable("connection_refused", ""));
  const auto update = keeping.only_update();
  EXPECT_EQ(update.status, DeliveryStatus::pending);
  EXPECT_EQ(update.attempts, 0);
  EXPECT_EQ(update.interruptions, 0);
  EXPECT_EQ(update.available_in, milliseconds(0));
  EXPECT_TRUE(update.unless_started);
  ASSERT_FALSE(keeping.notices_.empty());
  EXPECT_EQ(keeping.notices_[0].kind, NoticeKind::route_paused);
  keeping.give(keeper_input::Recorded{{RecordAnswer::recorded}});
  keeping.give(keeper_input::Woken{});
  EXPECT_TRUE(keeping.is_idle());  // nothing is handed out while it is down
  keeping.pass(seconds(2));
  (void)keeping.take<keeper_action::FindLost>();
  keeping.give(keeper_input::Found{});
  EXPECT_EQ(keeping.take<keeper_action::HandOut>().request.limit, 1U);  // a probe
}

TEST(JobKeeper, a_task_that_perhaps_arrived_is_taken_back_unless_a_worker_has_it) {
  for (const auto& outcome : {Outcome::unknown("timed_out", ""), Outcome::lost_connection("")}) {
    Keeping keeping({broker_route()});
    keeping.begin_with_nothing_lost();
    keeping.answer(keeping.hand_out({kept_task(1)}).at(0), outcome);
    const auto update = keeping.only_update();
    EXPECT_EQ(update.status, DeliveryStatus::pending);
    EXPECT_EQ(update.attempts, 0);
    EXPECT_TRUE(update.unless_started);
  }
}

TEST(JobKeeper, a_publisher_that_broke_gives_its_tasks_back) {
  Keeping keeping({broker_route()});
  keeping.begin_with_nothing_lost();
  (void)keeping.hand_out({kept_task(1), kept_task(2)});
  keeping.give(keeper_input::PublisherFailed{0, failure(Disposition::stop)});
  EXPECT_EQ(keeping.take<keeper_action::Record>().request.updates.size(), 2U);
  EXPECT_EQ(keeping.keeper_.in_flight(), 0U);
}

TEST(JobKeeper, no_more_is_handed_out_than_the_window_has_room_for) {
  Keeping keeping({broker_route()});
  keeping.begin_with_nothing_lost();
  EXPECT_EQ(keeping.take<keeper_action::HandOut>().request.limit, 10U);
  std::vector<Task> tasks;
  for (std::uint8_t i = 1; i <= 8; ++i)
    tasks.push_back(kept_task(i));
  keeping.give(keeper_input::HandedOut{{std::move(tasks), true, std::nullopt}});
  EXPECT_EQ(keeping.take<keeper_action::HandOut>().request.limit, 2U);
}

TEST(JobKeeper, routes_take_turns) {
  Keeping keeping({broker_route("one"), broker_route("two")});
  keeping.begin_with_nothing_lost();
  EXPECT_EQ(keeping.take<keeper_action::HandOut>().request.routes.at(0), "one");
  keeping.give(keeper_input::HandedOut{{{}, true, std::nullopt}});
  EXPECT_EQ(keeping.take<keeper_action::HandOut>().request.routes.at(0), "two");
}

TEST(JobKeeper, what_could_not_be_recorded_is_recorded_later) {
  Keeping keeping;
  keeping.begin();
  keeping.give(keeper_input::Found{lost(true)});
  (void)keeping.only_update();
  keeping.give(keeper_input::StoreFailed{failure()});
  EXPECT_TRUE(keeping.is_idle());
  keeping.pass(seconds(1));
  EXPECT_EQ(keeping.only_update().delivery_id, kept_job(1).delivery_id);
}

TEST(JobKeeper, what_a_person_has_to_mend_ends_it) {
  Keeping keeping;
  keeping.begin();
  keeping.give(keeper_input::StoreFailed{failure(Disposition::stop)});
  EXPECT_TRUE(keeping.take<keeper_action::Done>().error);
}

TEST(JobKeeper, a_stop_waits_for_what_is_in_flight_and_records_it) {
  Keeping keeping({broker_route()});
  keeping.begin_with_nothing_lost();
  const auto messages = keeping.hand_out({kept_task(1)});
  keeping.give(keeper_input::Stop{});
  EXPECT_TRUE(keeping.is_idle());
  keeping.answer(messages.at(0), Outcome::refused("nack", ""));
  (void)keeping.only_update();
  keeping.give(keeper_input::Recorded{{RecordAnswer::recorded}});
  EXPECT_FALSE(keeping.take<keeper_action::Done>().error);
}

TEST(JobKeeper, a_stop_that_waits_no_longer_takes_back_what_no_worker_has) {
  Keeping keeping({broker_route()});
  keeping.begin_with_nothing_lost();
  const auto messages = keeping.hand_out({kept_task(1)});
  keeping.give(keeper_input::Stop{});
  keeping.give(keeper_input::GiveUp{});
  const auto update = keeping.only_update();
  EXPECT_EQ(update.status, DeliveryStatus::pending);
  EXPECT_EQ(update.attempts, 0);
  EXPECT_TRUE(update.unless_started);
  keeping.answer(messages.at(0), Outcome::confirmed());  // too late
  keeping.give(keeper_input::Recorded{{RecordAnswer::recorded}});
  EXPECT_FALSE(keeping.take<keeper_action::Done>().error);
}

TEST(JobKeeper, a_keeper_can_begin_again_after_a_pass) {
  Keeping keeping;
  keeping.begin_with_nothing_lost(false);
  (void)keeping.take<keeper_action::Done>();
  keeping.begin_with_nothing_lost(false);
  (void)keeping.take<keeper_action::Done>();
}

}  // namespace
}  // namespace postrider::core
