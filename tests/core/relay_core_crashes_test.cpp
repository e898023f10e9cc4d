// What the core does after owners that died: step by step, as a crash may come between any two.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/script.hpp"

namespace postrider::core {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::int64_t only_seq(const action::Submit& submit) {
  return submit.messages.size() == 1 ? submit.messages[0].event->seq.value() : -1;
}

/// The one suspicion that a settle stores.
Suspicion stored_by(const action::Settle& settle) {
  if (settle.request.suspicions.size() == 1) return settle.request.suspicions[0].suspicion;
  ADD_FAILURE() << "it stores " << settle.request.suspicions.size() << " suspicions";
  return {};
}

std::vector<std::int64_t> routed_by(const action::Settle& settle) {
  std::vector<std::int64_t> seqs;
  for (const auto& event : settle.request.routed)
    seqs.push_back(event.seq.value());
  return seqs;
}

TEST(RelayCoreCrashes, After_one_crash_everything_is_sent_at_once_and_settling_it_clears) {
  Script script;
  script.begin(false, {1});
  script.read({1, 2, 3});
  const auto submit = script.take<action::Submit>();
  EXPECT_THAT(submit.messages, SizeIs(3));
  script.give(Script::confirmed(submit));
  const auto settle = script.take<action::Settle>();
  EXPECT_THAT(routed_by(settle), ::testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(stored_by(settle), Suspicion{}) << "in the transaction of what was settled";
  EXPECT_FALSE(script.was_told(NoticeKind::crashes_suspected));
}

TEST(RelayCoreCrashes, After_one_crash_a_part_that_is_settled_is_no_progress) {
  Script script;
  script.begin(true, {1});
  script.read({1, 2});
  const auto submit = script.take<action::Submit>();
  script.give(input::Outcomes{{{submit.messages[0].attempt, Outcome::confirmed()}}});
  script.clock_.advance(milliseconds(25));
  script.give(input::Tick{});
  EXPECT_THAT(script.take<action::Settle>().request.suspicions, IsEmpty());
}

TEST(RelayCoreCrashes, After_one_crash_the_first_look_is_the_round_however_long_the_backlog) {
  Script script;
  script.begin(true, {1});
  (void)script.take<action::TakeDue>();
  script.give(input::TookDue{});
  (void)script.take<action::Claim>();
  auto first = Script::claimed({1});
  first.batch.more = true;
  script.give(std::move(first));
  const auto submit = script.take<action::Submit>();
  (void)script.take<action::Claim>();
  script.give(Script::confirmed(submit));
  auto second = Script::claimed({2});
  second.batch.more = true;
  script.give(std::move(second));
  const auto settle = script.take<action::Settle>();
  EXPECT_THAT(routed_by(settle), ::testing::ElementsAre(1));
  EXPECT_EQ(stored_by(settle), Suspicion{});
}

TEST(RelayCoreCrashes, After_two_crashes_each_event_is_named_before_it_is_sent_alone) {
  Script script;
  script.begin(false, {2});
  EXPECT_TRUE(script.was_told(NoticeKind::crashes_suspected));
  script.read({1, 2});
  EXPECT_FALSE(script.wants<action::Submit>()) << "its name is not stored yet";
  auto settle = script.take<action::Settle>();
  EXPECT_EQ(stored_by(settle), (Suspicion{2, Seq(1)}));
  EXPECT_THAT(routed_by(settle), IsEmpty());
  script.give(input::Settled{});

  auto submit = script.take<action::Submit>();
  EXPECT_EQ(only_seq(submit), 1);
  EXPECT_FALSE(script.wants<action::Settle>());
  script.give(Script::confirmed(submit));
  EXPECT_FALSE(script.wants<action::Submit>()) << "the first one is not settled yet";
  settle = script.take<action::Settle>();
  EXPECT_EQ(stored_by(settle), (Suspicion{2, Seq(2)}));
  EXPECT_THAT(routed_by(settle), ::testing::ElementsAre(1));
  script.give(input::Settled{});

  submit = script.take<action::Submit>();
  EXPECT_EQ(only_seq(submit), 2);
  script.give(Script::confirmed(submit));
  settle = script.take<action::Settle>();
  EXPECT_EQ(stored_by(settle), Suspicion{}) << "all that the dead owner had is settled";
  EXPECT_FALSE(script.was_told(NoticeKind::crashes_cleared));
  script.give(input::Settled{});
  EXPECT_TRUE(script.was_told(NoticeKind::crashes_cleared));
}

TEST(RelayCoreCrashes, A_name_whose_storing_was_in_doubt_is_stored_again_before_the_event_leaves) {
  Script script;
  script.begin(false, {2});
  script.read({1});
  (void)script.take<action::Settle>();
  script.give(input::StoreFailed{store_error(Disposition::in_doubt)});
  EXPECT_FALSE(script.wants<action::Submit>());
  EXPECT_EQ(stored_by(script.take<action::Settle>()), (Suspicion{2, Seq(1)}));
  script.give(input::Settled{});
  EXPECT_TRUE(script.wants<action::Submit>());
}

TEST(RelayCoreCrashes, G10_the_event_that_was_alone_at_two_crashes_is_a_dead_letter_unsent) {
  Script script;
  script.begin(false, {4, Seq(2)});
  script.read({1, 2, 3});
  auto settle = script.take<action::Settle>();
  EXPECT_THAT(routed_by(settle), ::testing::ElementsAre(2));
  ASSERT_THAT(settle.request.deliveries, SizeIs(1));
  const auto& dead = settle.request.deliveries[0];
  EXPECT_EQ(dead.status, DeliveryStatus::failed);
  EXPECT_EQ(dead.failure_code, "relay_crashed");
  EXPECT_TRUE(dead.ambiguous);
  EXPECT_EQ(dead.attempts, 0) << "a crash is no result";
  EXPECT_EQ(stored_by(settle), (Suspicion{2, Seq(1)}));
  EXPECT_FALSE(script.was_told(NoticeKind::delivery_failed)) << "not before it is stored";
  script.give(input::Settled{});
  EXPECT_TRUE(script.was_told(NoticeKind::delivery_failed));
  auto submit = script.take<action::Submit>();
  EXPECT_EQ(only_seq(submit), 1);
  script.give(Script::confirmed(submit));
  (void)script.take<action::Settle>();
  script.give(input::Settled{});
  submit = script.take<action::Submit>();
  EXPECT_EQ(only_seq(submit), 3);
  script.give(Script::confirmed(submit));
  EXPECT_EQ(stored_by(script.take<action::Settle>()), Suspicion{});
}

TEST(RelayCoreCrashes, An_event_that_was_alone_at_one_crash_is_sent_again_first_and_still_named) {
  Script script;
  script.begin(false, {3, Seq(2)});
  script.read({1, 2});
  EXPECT_EQ(only_seq(script.take<action::Submit>()), 2);
}

TEST(RelayCoreCrashes, A_crash_without_a_name_blames_nobody) {
  Script script;
  script.begin(false, {4});
  script.read({1});
  const auto settle = script.take<action::Settle>();
  EXPECT_THAT(settle.request.deliveries, IsEmpty());
  EXPECT_EQ(stored_by(settle), (Suspicion{2, Seq(1)}));
}

TEST(RelayCoreCrashes, A_named_event_that_is_settled_already_blames_nobody) {
  Script script;
  script.begin(false, {4, Seq(1)});
  script.read({2});
  const auto settle = script.take<action::Settle>();
  EXPECT_THAT(settle.request.deliveries, IsEmpty());
  EXPECT_EQ(stored_by(settle), (Suspicion{2, Seq(2)}));
}

TEST(RelayCoreCrashes, Nothing_to_send_clears_at_once) {
  Script script;
  script.begin(false, {2});
  script.read({});
  EXPECT_EQ(stored_by(script.take<action::Settle>()), Suspicion{});
  script.give(input::Settled{});
  EXPECT_TRUE(script.was_told(NoticeKind::crashes_cleared));
}

TEST(RelayCoreCrashes, An_event_is_settled_on_one_route_before_it_is_sent_on_the_next) {
  Script script({route_named("first"), route_named("second")});
  script.begin(false, {2});
  script.read({1});
  (void)script.take<action::Settle>();
  script.give(input::Settled{});
  const auto submit = script.take<action::Submit>();
  EXPECT_FALSE(script.wants<action::Submit>()) << "one delivery at a time";
  script.give(Script::confirmed(submit));
  const auto settle = script.take<action::Settle>();
  EXPECT_THAT(routed_by(settle), ::testing::ElementsAre(1));
  ASSERT_THAT(settle.request.deliveries, SizeIs(1));
  EXPECT_EQ(settle.request.deliveries[0].route, "second");
  EXPECT_EQ(settle.request.deliveries[0].status, DeliveryStatus::pending);
  script.give(input::Settled{});
  EXPECT_TRUE(script.wants<action::TakeDue>()) << "it is taken up at once";
}

TEST(RelayCoreCrashes, What_is_quarantined_are_the_deliveries_that_are_still_open) {
  Script script({route_named("first"), route_named("second")});
  script.begin(false, {4, Seq(1)});
  (void)script.take<action::TakeDue>();
  DueBatch batch;
  DueDelivery due;
  due.delivery.id = DeliveryId(script.ids_.next());
  due.delivery.event_seq = Seq(1);
  due.delivery.route = "second";
  due.event = Script::claimed({1}).batch.events[0].event;
  batch.deliveries.push_back(due);
  script.give(input::TookDue{batch});
  (void)script.take<action::Claim>();
  script.give(Script::claimed({}));

  const auto settle = script.take<action::Settle>();
  EXPECT_THAT(settle.request.deliveries, IsEmpty()) << "on the first route it was confirmed";
  ASSERT_THAT(settle.request.updates, SizeIs(1));
  EXPECT_EQ(settle.request.updates[0].id, due.delivery.id);
  EXPECT_EQ(settle.request.updates[0].status, DeliveryStatus::failed);
  EXPECT_EQ(settle.request.updates[0].failure_code, "relay_crashed");
}

TEST(RelayCoreCrashes, An_event_that_came_back_is_not_named_any_more_while_nothing_can_be_sent) {
  Script script;
  script.begin(true, {2});
  script.read({1});
  (void)script.take<action::Settle>();
  script.give(input::Settled{});
  const auto submit = script.take<action::Submit>();
  script.give(
      input::Outcomes{{{submit.messages[0].attempt, Outcome::unavailable("down", "it is down")}}});
  EXPECT_EQ(stored_by(script.take<action::Settle>()), Suspicion{2})
      << "a relay that is killed during an outage must not leave a name";
}

TEST(RelayCoreCrashes,
     A_relay_without_all_partitions_looks_for_free_ones_as_often_as_it_may_sleep) {
  RelayOptions options;
  options.lease_time = std::chrono::seconds(60);
  options.lease_renewal = std::chrono::seconds(20);
  options.sleep = std::chrono::seconds(1);
  Script script({route_named("all")}, options);
  script.give(input::Begin{true});
  (void)script.take<action::Lease>();
  LeaseGrant grant;
  grant.foreign.push_back({Partition(0), "somebody", std::chrono::seconds(60)});
  script.give(input::Leased{grant, script.clock_.steady()});
  EXPECT_EQ(script.core_.wake_at(), script.clock_.steady() + options.sleep);
  script.clock_.advance(options.sleep);
  script.give(input::Tick{});
  EXPECT_TRUE(script.wants<action::Lease>());
}

}  // namespace
}  // namespace postrider::core
