// Schedules become known: when they begin, and what a later definition changes.
#include <chrono>

#include "conformance/schedule_store_builders.hpp"

namespace postrider::testing {

using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_P(ScheduleStoreConformance, A_fresh_database_has_the_tables_and_knows_no_schedule) {
  expect_ok(store_->check_schema(soon()));
  const auto found = value_of(store_->states(now(), soon()));
  EXPECT_THAT(found.schedules, IsEmpty());
  EXPECT_EQ(found.now, now());
}

TEST_P(ScheduleStoreConformance, A_new_schedule_begins_when_it_is_first_seen) {
  clock_.advance(hours(3));
  register_one(hourly([](Schedule& schedule) {
    schedule.time_zone = "Europe/Berlin";
    schedule.missed = Missed::all;
    schedule.most_missed = 7;
  }));
  const auto found = state();
  EXPECT_EQ(found.cron, "0 * * * *");
  EXPECT_EQ(found.time_zone, "Europe/Berlin");
  EXPECT_EQ(found.type, "tick");
  EXPECT_EQ(found.missed, Missed::all);
  EXPECT_EQ(found.most_missed, 7);
  EXPECT_THAT(found.definition_hash, SizeIs(64));
  EXPECT_EQ(found.decided_until, hour(3));
  EXPECT_EQ(found.created_at, hour(3));
  EXPECT_FALSE(found.last_slot_at);
  EXPECT_FALSE(found.last_event_id);
  EXPECT_FALSE(found.paused_at);
}

TEST_P(ScheduleStoreConformance, Without_a_time_the_databases_own_clock_judges) {
  expect_ok(store_->register_all({{hourly()}, std::nullopt}, soon()));
  const auto found = value_of(store_->states(std::nullopt, soon()));
  const auto away = std::chrono::abs(found.now - system_clock().wall());
  EXPECT_LT(away, hours(1)) << "that of the tests' clock is much further away";
  ASSERT_THAT(found.schedules, SizeIs(1));
  EXPECT_LE(found.schedules[0].decided_until, found.now);
}

TEST_P(ScheduleStoreConformance, To_register_again_changes_nothing) {
  register_one(hourly());
  clock_.advance(hours(5));
  register_one(hourly());
  EXPECT_EQ(state().decided_until, hour(0));
  EXPECT_EQ(state().created_at, hour(0));
}

TEST_P(ScheduleStoreConformance, Other_times_begin_when_they_are_first_seen) {
  register_one(hourly());
  clock_.advance(hours(5));
  register_one(hourly([](Schedule& schedule) { schedule.cron = "30 * * * *"; }));
  EXPECT_EQ(state().decided_until, hour(5));
  EXPECT_EQ(state().created_at, hour(0));
  clock_.advance(hours(1));
  register_one(hourly([](Schedule& schedule) {
    schedule.cron = "30 * * * *";
    schedule.time_zone = "Asia/Tokyo";
  }));
  EXPECT_EQ(state().decided_until, hour(6));
}

TEST_P(ScheduleStoreConformance, Another_event_leaves_open_what_is_due) {
  register_one(hourly());
  const auto before = state().definition_hash;
  clock_.advance(hours(5));
  register_one(hourly([](Schedule& schedule) { schedule.payload = R"({"new":true})"; }));
  EXPECT_EQ(state().decided_until, hour(0));
  EXPECT_NE(state().definition_hash, before);
}

TEST_P(ScheduleStoreConformance, Schedules_are_listed_by_name_and_left_alone_by_others) {
  register_one(hourly([](Schedule& schedule) { schedule.name = "b"; }));
  register_one(hourly([](Schedule& schedule) { schedule.name = "c"; }));
  register_one(hourly([](Schedule& schedule) { schedule.name = "a"; }));
  std::vector<std::string> names;
  for (const auto& found : states())
    names.push_back(found.name);
  EXPECT_THAT(names, ElementsAre("a", "b", "c"));
}

}  // namespace postrider::testing
