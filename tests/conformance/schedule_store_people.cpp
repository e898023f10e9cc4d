// What people do with schedules, and that it is written down.
#include <chrono>

#include "conformance/schedule_store_builders.hpp"

namespace postrider::testing {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace {

AuditedScheduleChange by_ann(const std::string& action) {
  return {action, "hourly", operator_ann().name, operator_ann().reason};
}

}  // namespace

TEST_P(ScheduleStoreConformance, A_paused_schedule_says_by_whom_and_why) {
  register_one(hourly());
  clock_.advance(hours(1));
  EXPECT_TRUE(value_of(store_->pause("hourly", operator_ann(), now(), soon())));
  EXPECT_FALSE(value_of(store_->pause("hourly", {"bob", ""}, now(), soon())));
  const auto found = state();
  EXPECT_EQ(found.paused_at, hour(1));
  EXPECT_EQ(found.paused_by, "ann");
  EXPECT_EQ(found.reason, "stocktaking");
  EXPECT_THAT(harness_->audit(), ElementsAre(by_ann("schedule_pause")));
}

TEST_P(ScheduleStoreConformance, A_resumed_schedule_leaves_out_what_has_passed) {
  register_one(hourly());
  EXPECT_FALSE(value_of(store_->resume("hourly", operator_ann(), now(), soon())));
  value_of(store_->pause("hourly", operator_ann(), now(), soon()));
  clock_.advance(hours(5));
  EXPECT_TRUE(value_of(store_->resume("hourly", operator_ann(), now(), soon())));
  const auto found = state();
  EXPECT_FALSE(found.paused_at);
  EXPECT_EQ(found.reason, "");
  EXPECT_EQ(found.decided_until, hour(5));
  EXPECT_THAT(harness_->audit(), ElementsAre(by_ann("schedule_pause"), by_ann("schedule_resume")));
}

TEST_P(ScheduleStoreConformance, A_pause_outlives_another_definition) {
  register_one(hourly());
  value_of(store_->pause("hourly", operator_ann(), now(), soon()));
  register_one(hourly([](Schedule& schedule) { schedule.cron = "5 * * * *"; }));
  EXPECT_TRUE(state().paused_at);
}

TEST_P(ScheduleStoreConformance, A_run_by_hand_is_an_event_beside_the_slots_even_while_paused) {
  register_one(hourly());
  value_of(store_->pause("hourly", operator_ann(), now(), soon()));
  clock_.advance(minutes(30));
  const auto first = value_of(store_->run(hourly(), operator_ann(), now(), soon()));
  const auto second = value_of(store_->run(hourly(), operator_ann(), now(), soon()));
  EXPECT_NE(first, second);
  const auto found = state();
  EXPECT_EQ(found.decided_until, hour(0)) << "no slot is used up";
  EXPECT_EQ(found.last_slot_at, hour(0) + minutes(30));
  EXPECT_EQ(found.last_event_id, second);
  EXPECT_TRUE(found.paused_at);
  EXPECT_THAT(events(), SizeIs(2));
  EXPECT_THAT(harness_->audit(), ElementsAre(by_ann("schedule_pause"), by_ann("schedule_run"),
                                             by_ann("schedule_run")));
}

TEST_P(ScheduleStoreConformance,
       A_run_by_hand_makes_an_unknown_schedule_known_and_changes_no_other) {
  value_of(store_->run(hourly(), operator_ann(), now(), soon()));
  const auto known = state();
  EXPECT_EQ(known.decided_until, hour(0));
  clock_.advance(hours(1));
  value_of(store_->run(hourly([](Schedule& schedule) { schedule.cron = "1 * * * *"; }),
                       operator_ann(), now(), soon()));
  EXPECT_EQ(state().cron, "0 * * * *");
  EXPECT_EQ(state().definition_hash, known.definition_hash);
}

TEST_P(ScheduleStoreConformance, A_run_by_hand_at_the_time_of_a_slot_does_not_take_its_place) {
  register_one(hourly());
  clock_.advance(hours(1));
  value_of(store_->run(hourly(), operator_ann(), now(), soon()));
  const auto answer = fire(fire_request({hour(1)}));
  ASSERT_THAT(answer.event_ids, SizeIs(1));
  EXPECT_TRUE(answer.event_ids[0]);
  EXPECT_THAT(events(), SizeIs(2));
}

TEST_P(ScheduleStoreConformance, What_is_forgotten_is_new_when_it_comes_again) {
  register_one(hourly());
  clock_.advance(hours(1));
  fire(fire_request({hour(1)}));
  EXPECT_TRUE(value_of(store_->forget("hourly", operator_ann(), now(), soon())));
  EXPECT_FALSE(value_of(store_->forget("hourly", operator_ann(), now(), soon())));
  EXPECT_THAT(states(), IsEmpty());
  EXPECT_THAT(events(), SizeIs(1)) << "what it has made stays";
  clock_.advance(hours(4));
  register_one(hourly());
  EXPECT_EQ(state().decided_until, hour(5));
  EXPECT_THAT(harness_->audit(), ElementsAre(by_ann("schedule_forget")));
}

TEST_P(ScheduleStoreConformance, What_nobody_knows_cannot_be_changed) {
  EXPECT_FALSE(value_of(store_->pause("nobody", operator_ann(), now(), soon())));
  EXPECT_FALSE(value_of(store_->resume("nobody", operator_ann(), now(), soon())));
  EXPECT_FALSE(value_of(store_->forget("nobody", operator_ann(), now(), soon())));
  EXPECT_THAT(harness_->audit(), IsEmpty());
}

}  // namespace postrider::testing
