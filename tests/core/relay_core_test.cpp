// What scenarios cannot show: single steps, and failures of the store at each of them.
#include "core/relay_core.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/script.hpp"

namespace postrider::core {
namespace {

TEST(RelayCore, A_pass_leases_looks_for_what_is_due_claims_sends_and_settles) {
  Script script;
  script.begin();
  script.read({1, 2});
  const auto submit = script.take<action::Submit>();
  EXPECT_EQ(submit.messages.size(), 2U);
  EXPECT_FALSE(script.wants<action::Settle>());
  script.give(Script::confirmed(submit));
  const auto settle = script.take<action::Settle>();
  EXPECT_EQ(settle.request.routed.size(), 2U);
  EXPECT_TRUE(settle.request.deliveries.empty()) << "a first attempt that succeeds is never stored";
  ASSERT_EQ(settle.request.leases.size(), 1U);
  EXPECT_EQ(settle.request.leases[0].token, FencingToken(1));
  script.give(input::Settled{});
  const auto mark = script.take<action::Settle>();
  EXPECT_EQ(mark.request.mark, ReadMark("2"));
  script.give(input::Settled{});
  const auto done = script.take<action::Done>();
  EXPECT_FALSE(done.error);
  EXPECT_EQ(done.report.sent.size(), 2U);
}

TEST(RelayCore, A_failure_of_the_store_at_each_step_ends_the_pass_with_it_and_is_read_again) {
  const auto error = store_error(Disposition::retry);
  {
    Script script;
    script.give(input::Begin{});
    (void)script.take<action::Lease>();
    script.give(input::StoreFailed{error});
    EXPECT_TRUE(script.take<action::Done>().error) << "lease";
  }
  {
    Script script;
    script.begin();
    (void)script.take<action::TakeDue>();
    script.give(input::StoreFailed{error});
    EXPECT_TRUE(script.take<action::Done>().error) << "due";
  }
  {
    Script script;
    script.begin();
    (void)script.take<action::TakeDue>();
    script.give(input::TookDue{});
    (void)script.take<action::Claim>();
    script.give(input::StoreFailed{error});
    EXPECT_TRUE(script.take<action::Done>().error) << "claim";
  }
}

TEST(RelayCore, A_settle_whose_answer_is_lost_is_given_again_and_then_the_pass_fails) {
  Script script;
  script.begin();
  script.read({1});
  script.give(Script::confirmed(script.take<action::Submit>()));
  for (int i = 0; i < 3; ++i) {
    const auto settle = script.take<action::Settle>();
    ASSERT_EQ(settle.request.routed.size(), 1U);
    EXPECT_FALSE(script.wants<action::Done>());
    script.give(input::StoreFailed{store_error(Disposition::in_doubt)});
  }
  EXPECT_TRUE(script.take<action::Done>().error);

  script.give(input::Begin{});
  (void)script.take<action::Lease>();
  script.give(script.leased());
  (void)script.take<action::TakeDue>();
  script.give(input::TookDue{});
  const auto claim = script.take<action::Claim>();
  EXPECT_EQ(claim.request.after, std::vector{ReadMark()}) << "the event is read again";
}

TEST(RelayCore, F34_after_a_settle_that_failed_one_event_at_a_time_is_sent_until_one_is_settled) {
  Script script;
  script.begin();
  script.read({1, 2});
  script.give(Script::confirmed(script.take<action::Submit>()));
  for (int i = 0; i < 3; ++i) {
    (void)script.take<action::Settle>();
    script.give(input::StoreFailed{store_error(Disposition::retry)});
  }
  (void)script.take<action::Done>();

  script.give(input::Begin{true});
  (void)script.take<action::Lease>();
  script.give(script.leased());
  EXPECT_EQ(script.take<action::TakeDue>().request.limit, 1U);
  script.give(input::TookDue{});
  EXPECT_EQ(script.take<action::Claim>().request.limit, 1U);
  auto first = Script::claimed({1});
  first.batch.more = true;
  script.give(std::move(first));
  EXPECT_FALSE(script.wants<action::Claim>()) << "nothing is read beside it";
  script.give(Script::confirmed(script.take<action::Submit>()));
  EXPECT_EQ(script.take<action::Settle>().request.routed.size(), 1U);
  script.give(input::Settled{});
  EXPECT_EQ(script.take<action::Claim>().request.limit, RelayOptions().batch);
}

TEST(RelayCore, A_settle_that_will_never_be_accepted_is_not_repeated) {
  Script script;
  script.begin();
  script.read({1});
  script.give(Script::confirmed(script.take<action::Submit>()));
  (void)script.take<action::Settle>();
  script.give(input::StoreFailed{store_error(Disposition::stop)});
  EXPECT_TRUE(script.take<action::Done>().error);
}

TEST(RelayCore, Nothing_is_sent_once_the_lease_has_run_out_by_the_own_clock) {
  Script script;
  script.begin();
  (void)script.take<action::TakeDue>();
  script.give(input::TookDue{});
  (void)script.take<action::Claim>();
  script.clock_.advance(std::chrono::seconds(6));  // frozen while the claim was on its way
  script.give(Script::claimed({1}));
  EXPECT_FALSE(script.wants<action::Submit>());
  (void)script.take<action::Lease>();
  script.give(script.leased());
  EXPECT_TRUE(script.wants<action::Submit>()) << "renewed, it goes on";
}

TEST(RelayCore, A_taken_over_partition_is_dropped_with_all_that_was_read_of_it) {
  Script script;
  script.begin();
  script.read({1});
  script.give(Script::confirmed(script.take<action::Submit>()));
  (void)script.take<action::Settle>();
  SettleResult lost;
  lost.lost.push_back(Partition(0));
  script.give(input::Settled{lost});
  EXPECT_TRUE(script.was_told(NoticeKind::lease_lost));
  (void)script.take<action::Lease>();
  script.give(input::Leased{{}, script.clock_.steady()});
  const auto done = script.take<action::Done>();
  EXPECT_FALSE(done.error);
  EXPECT_FALSE(script.wants<action::Settle>());
}

TEST(RelayCore, F6_after_a_long_freeze_the_timers_are_one_tick_and_no_burst) {
  Script script;
  script.begin(true);
  script.read({});
  (void)script.take<action::Settle>();  // of the mark
  script.give(input::Settled{});
  (void)script.take<action::Purge>();  // which has no answer yet
  script.clock_.advance(std::chrono::minutes(5));
  script.give(input::Tick{});
  (void)script.take<action::Lease>();
  EXPECT_TRUE(script.pending_.empty()) << "300 renewals were missed";
  script.give(script.leased());
  EXPECT_FALSE(script.wants<action::Lease>());
  EXPECT_EQ(script.pending_.size(), 1U);
}

const std::string namesake = "relay-01890a5d-ac96-774b-bcce-b302099a8057";

/// Whether a standby that looks every second tells of a shared name while `owner` is at work.
bool tells_of_shared_name(Script& script, const std::string& owner) {
  script.give(input::Begin{true});
  for (int second = 0; second < 20; ++second) {
    (void)script.take<action::Lease>();
    script.give(script.owned_by(owner));
    script.clock_.advance(std::chrono::seconds(1));
    script.give(input::Tick{});
  }
  return script.was_told(NoticeKind::name_shared);
}

TEST(RelayCore, F7_another_relay_at_work_under_the_same_name_is_told_of_once) {
  Script script;
  EXPECT_TRUE(tells_of_shared_name(script, namesake));
  EXPECT_EQ(script.notices_.size(), 1U);
}

TEST(RelayCore, F7_a_relay_whose_name_only_begins_like_ours_is_another_one) {
  for (const std::string& other :
       {"relay-2-" + namesake.substr(6), "other-" + namesake.substr(6)}) {
    Script script;
    EXPECT_FALSE(tells_of_shared_name(script, other)) << other;
  }
}

TEST(RelayCore, F7_the_lease_that_a_dead_relay_of_this_name_left_is_no_shared_name) {
  Script script;
  script.give(input::Begin{true});
  (void)script.take<action::Lease>();
  auto left = script.owned_by(namesake);
  script.give(left);
  for (auto& lease = left.grant.foreign.front(); lease.remaining > milliseconds(0);) {
    script.clock_.advance(std::chrono::seconds(1));
    script.give(input::Tick{});
    (void)script.take<action::Lease>();
    lease.remaining -= std::chrono::seconds(1);
    left.asked_at = script.clock_.steady();
    script.give(left);
  }
  EXPECT_FALSE(script.was_told(NoticeKind::name_shared));
}

TEST(RelayCore, An_outcome_that_comes_after_its_partition_was_lost_changes_nothing) {
  Script script;
  script.begin(true);
  script.read({1});
  const auto submit = script.take<action::Submit>();
  script.clock_.advance(std::chrono::seconds(2));
  script.give(input::Tick{});
  (void)script.take<action::Lease>();
  script.give(input::Leased{{}, script.clock_.steady()});
  script.give(Script::confirmed(submit));
  EXPECT_FALSE(script.wants<action::Settle>());
}

TEST(RelayCore, An_outcome_that_nobody_waits_for_is_ignored) {
  Script script;
  script.begin();
  script.read({1});
  script.give(input::Outcomes{{{AttemptId(999), Outcome::confirmed()}}});
  EXPECT_FALSE(script.wants<action::Settle>());
}

TEST(RelayCore, A_slow_route_delays_the_mark_of_the_others_for_settle_patience_only) {
  Script script({route_named("fast"), route_named("slow")});
  script.begin();
  script.read({1});
  auto fast = script.take<action::Submit>();
  auto slow = script.take<action::Submit>();
  if (fast.route != 0) std::swap(fast, slow);
  script.give(Script::confirmed(fast));
  EXPECT_FALSE(script.wants<action::Settle>());
  script.clock_.advance(milliseconds(999));
  script.give(input::Tick{});
  EXPECT_FALSE(script.wants<action::Settle>());
  script.clock_.advance(milliseconds(1));
  script.give(input::Tick{});
  if (script.wants<action::Lease>()) {
    (void)script.take<action::Lease>();
    script.give(script.leased());
  }
  script.clock_.advance(milliseconds(25));
  script.give(input::Tick{});
  const auto settle = script.take<action::Settle>();
  EXPECT_EQ(settle.request.routed.size(), 1U);
  ASSERT_EQ(settle.request.deliveries.size(), 1U);
  const auto& row = settle.request.deliveries[0];
  EXPECT_EQ(row.status, DeliveryStatus::dispatched);
  EXPECT_EQ(row.dispatch_id, slow.messages[0].dispatch_id);
  script.give(input::Settled{});

  script.give(Script::confirmed(slow));  // the late outcome completes that row
  while (!script.wants<action::Settle>()) {
    (void)script.take<action::TakeDue>();
    script.give(input::TookDue{});
  }
  auto late = script.take<action::Settle>();
  if (late.request.mark) {
    script.give(input::Settled{});
    late = script.take<action::Settle>();
  }
  ASSERT_EQ(late.request.updates.size(), 1U);
  const auto& update = late.request.updates[0];
  EXPECT_EQ(update.id, row.id);
  EXPECT_EQ(update.expected_status, DeliveryStatus::dispatched);
  EXPECT_EQ(update.expected_dispatch_id, row.dispatch_id);
  EXPECT_EQ(update.status, DeliveryStatus::completed);
}

TEST(RelayCore, Every_dispatch_has_an_id_of_its_own) {
  Script script;
  script.begin();
  script.read({1, 2, 3});
  const auto submit = script.take<action::Submit>();
  ASSERT_EQ(submit.messages.size(), 3U);
  EXPECT_NE(submit.messages[0].dispatch_id, submit.messages[1].dispatch_id);
  EXPECT_NE(submit.messages[1].dispatch_id, submit.messages[2].dispatch_id);
  EXPECT_NE(submit.messages[0].attempt, submit.messages[1].attempt);
}

TEST(RelayCore, The_window_of_a_route_bounds_what_is_in_flight) {
  auto route = route_named("all");
  route.window = 2;
  Script script({route});
  script.begin();
  script.read({1, 2, 3, 4, 5});
  auto submit = script.take<action::Submit>();
  EXPECT_EQ(submit.messages.size(), 2U);
  EXPECT_EQ(script.core_.in_flight(), 2U);
  script.give(input::Outcomes{{{submit.messages[0].attempt, Outcome::confirmed()}}});
  EXPECT_EQ(script.take<action::Submit>().messages.size(), 1U);
}

TEST(RelayCore, A_stop_settles_what_is_in_flight_and_sends_nothing_more) {
  auto route = route_named("all");
  route.window = 1;
  Script script({route});
  script.begin(true);
  script.read({1, 2});
  const auto submit = script.take<action::Submit>();
  script.give(input::Stop{});
  EXPECT_FALSE(script.wants<action::Done>());
  script.give(Script::confirmed(submit));
  EXPECT_FALSE(script.wants<action::Submit>());
  EXPECT_EQ(script.take<action::Settle>().request.routed.size(), 1U);
  script.give(input::Settled{});
  EXPECT_TRUE(script.wants<action::Done>());
}

TEST(RelayCore, A_doubt_behind_an_answer_uses_an_attempt_and_is_no_outage) {
  Script script;
  script.begin();
  script.read({1, 2});
  const auto submit = script.take<action::Submit>();
  input::Outcomes answers;
  for (const auto& message : submit.messages) {
    answers.outcomes.push_back({message.attempt, Outcome::answered_unknown("http_500", "")});
  }

  script.give(std::move(answers));

  const auto settle = script.take<action::Settle>();
  ASSERT_EQ(settle.request.deliveries.size(), 2U);
  for (const auto& row : settle.request.deliveries) {
    EXPECT_EQ(row.attempts, 1);
    EXPECT_TRUE(row.ambiguous);
    EXPECT_EQ(row.failure_code, "http_500");
  }
  EXPECT_FALSE(script.was_told(NoticeKind::route_paused));
}

TEST(RelayCore, Where_the_only_address_is_gone_the_route_stops_and_nothing_fails) {
  auto route = route_named("hook");
  route.one_address = true;
  Script script({route});
  script.begin();
  script.read({1, 2});
  const auto submit = script.take<action::Submit>();
  input::Outcomes answers;
  for (const auto& message : submit.messages)
    answers.outcomes.push_back({message.attempt, Outcome::gone("410")});

  script.give(std::move(answers));

  const auto settle = script.take<action::Settle>();
  EXPECT_EQ(settle.request.stopped_routes, std::vector<std::string>{"hook"});
  EXPECT_TRUE(settle.request.deliveries.empty()) << "no other route needs them to be rows";
  EXPECT_TRUE(settle.request.routed.empty()) << "so they are read again";
  EXPECT_FALSE(script.wants<action::Submit>());
  script.give(input::Settled{});
  EXPECT_TRUE(script.was_told(NoticeKind::route_stopped));
}

TEST(RelayCore, A_publisher_that_throws_ends_the_pass_and_its_event_stays) {
  Script script;
  script.begin();
  script.read({1});
  (void)script.take<action::Submit>();
  script.give(input::PublisherFailed{0, {ErrorCode::internal, Disposition::stop, "threw", "", ""}});
  const auto done = script.take<action::Done>();
  ASSERT_TRUE(done.error);
  EXPECT_EQ(done.error->code, ErrorCode::internal);
  EXPECT_FALSE(script.wants<action::Settle>());
}

TEST(RelayCore, An_operators_change_makes_it_forget_rows_that_are_not_in_flight) {
  auto route = route_named("all");
  route.window = 1;
  Script script({route});
  script.begin(true);
  (void)script.take<action::TakeDue>();
  DueBatch batch;
  for (const std::int64_t seq : {1, 2}) {
    DueDelivery due;
    auto event = std::make_shared<Event>();
    event->seq = Seq(seq);
    due.event = std::move(event);
    due.delivery.id = DeliveryId(script.ids_.next());
    due.delivery.event_seq = Seq(seq);
    due.delivery.route = "all";
    batch.deliveries.push_back(std::move(due));
  }
  script.give(input::TookDue{batch});
  const auto submit = script.take<action::Submit>();
  (void)script.take<action::Claim>();
  script.give(Script::claimed({}));
  (void)script.take<action::Settle>();  // of the mark
  script.give(input::Settled{});
  script.clock_.advance(std::chrono::seconds(1));
  script.give(input::Tick{});
  (void)script.take<action::Lease>();
  auto changed = script.leased();
  changed.grant.leases[0].gained = false;
  changed.grant.leases[0].generation = 1;
  script.give(std::move(changed));
  script.give(Script::confirmed(submit));
  EXPECT_FALSE(script.wants<action::Submit>()) << "the second row is read again first";
}

TEST(RelayCore, Old_rows_are_purged_when_nothing_more_waits_to_be_read) {
  Script script;
  script.begin(true);
  (void)script.take<action::TakeDue>();
  script.give(input::TookDue{});
  (void)script.take<action::Claim>();
  EXPECT_FALSE(script.wants<action::Purge>()) << "nobody knows yet how much there is";
  auto batch = Script::claimed({1});
  batch.batch.more = true;
  script.give(std::move(batch));
  EXPECT_FALSE(script.wants<action::Purge>()) << "a batch was cut";
  (void)script.take<action::Claim>();
  script.give(Script::claimed({2}));

  EXPECT_EQ(script.take<action::Purge>().request.kept, Kept::events)
      << "what is in flight is no backlog";

  script.clock_.advance(std::chrono::seconds(1));
  script.give(input::Tick{});
  EXPECT_FALSE(script.wants<action::Purge>()) << "one at a time";
  script.give(input::Purged{{7, Seq(9), false}});
  EXPECT_TRUE(script.was_told(NoticeKind::rows_purged));
}

TEST(RelayCore, Due_deliveries_that_wait_hold_a_purge_back) {
  Script script;
  script.begin(true);
  (void)script.take<action::TakeDue>();
  DueBatch batch;
  batch.more = true;
  script.give(input::TookDue{batch});
  (void)script.take<action::TakeDue>();
  script.give(input::TookDue{batch});
  EXPECT_FALSE(script.wants<action::Purge>());
}

TEST(RelayCore, A_relay_without_routes_purges_too) {
  Script script(std::vector<Route>{});
  script.begin(true);
  EXPECT_FALSE(script.wants<action::TakeDue>()) << "there is nobody to deliver to";
  (void)script.take<action::Claim>();
  script.give(Script::claimed({}));
  EXPECT_TRUE(script.wants<action::Purge>());
}

TEST(RelayCore, A_failed_purge_is_told_and_the_relay_goes_on) {
  Script script;
  script.begin(true);
  script.read({});
  (void)script.take<action::Purge>();
  script.give(input::PurgeFailed{{ErrorCode::unavailable, Disposition::stop, "gone", "", ""}});
  EXPECT_TRUE(script.was_told(NoticeKind::purge_failed));
  EXPECT_FALSE(script.wants<action::Done>());
}

TEST(RelayCore, A_single_pass_purges_nothing) {
  Script script;
  script.begin(false);
  script.read({});
  EXPECT_FALSE(script.wants<action::Purge>());
}

TEST(RelayCore, Only_the_owner_of_partition_0_purges) {
  Script script;
  script.give(input::Begin{true});
  (void)script.take<action::Lease>();
  auto granted = script.leased();
  granted.grant.leases[0].lease.partition = Partition(1);
  script.give(std::move(granted));
  (void)script.take<action::TakeHeld>();
  script.give(input::TookHeld{});
  script.read({});
  EXPECT_FALSE(script.wants<action::Purge>());
}

TEST(RelayCore, A_relay_whose_lease_is_over_purges_nothing) {
  Script script;
  script.begin(true);
  script.read({});
  (void)script.take<action::Purge>();
  script.give(input::Purged{{500, Seq(9), true}});
  script.clock_.advance(RelayOptions().lease_time);
  script.give(input::Tick{});
  EXPECT_FALSE(script.wants<action::Purge>());
}

TEST(RelayCore, A_stopping_relay_purges_nothing_more) {
  Script script;
  script.begin(true);
  script.read({1});
  (void)script.take<action::Submit>();
  (void)script.take<action::Purge>();
  script.give(input::Stop{});
  script.give(input::Purged{{500, Seq(9), true}});
  script.clock_.advance(std::chrono::seconds(1));
  script.give(input::Tick{});
  EXPECT_FALSE(script.wants<action::Purge>());
}

TEST(RelayCore, The_next_slice_is_a_reason_to_wake_up) {
  Script script;
  script.begin(true);
  script.read({});
  (void)script.take<action::Purge>();
  if (script.wants<action::Settle>()) {
    (void)script.take<action::Settle>();  // of the mark
    script.give(input::Settled{});
  }
  script.give(input::Purged{{500, Seq(9), true}});
  ASSERT_TRUE(script.core_.wake_at());
  EXPECT_LE(*script.core_.wake_at() - script.clock_.steady(), PurgePlan::slice_pause);
}

TEST(RelayCore, An_abandoned_pass_ends_and_its_messages_are_sent_again_by_the_next) {
  Script script;
  script.begin(true);
  script.read({1});
  const auto left = script.take<action::Submit>();
  script.give(input::Abandon{});
  (void)script.take<action::Done>();
  EXPECT_EQ(script.core_.in_flight(), 0U);

  script.pending_.clear();
  script.give(input::Begin{});
  (void)script.take<action::Lease>();
  script.give(script.leased());
  script.read({1});
  const auto again = script.take<action::Submit>();
  EXPECT_EQ(again.messages.at(0).event->seq, Seq(1));
  EXPECT_NE(again.messages.at(0).attempt, left.messages.at(0).attempt);
  script.give(Script::confirmed(left));
  EXPECT_FALSE(script.wants<action::Settle>()) << "a late outcome is nobody's";
  script.give(Script::confirmed(again));
  EXPECT_EQ(script.take<action::Settle>().request.routed.size(), 1U);
}

}  // namespace
}  // namespace postrider::core
