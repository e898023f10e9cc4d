// Which slots are run, which are passed over, and when to look again.
#include "core/schedule_plan.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/timestamp_text.hpp"

namespace postrider::core {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Timestamp at(const std::string& text) {
  return parse_timestamp(text + ":00.000000Z").value();
}

Schedule hourly(Missed missed = Missed::one, int most_missed = 10) {
  Schedule schedule;
  schedule.name = "hourly";
  schedule.cron = "0 * * * *";
  schedule.type = "tick";
  schedule.missed = missed;
  schedule.most_missed = most_missed;
  return schedule;
}

ScheduleState state_of(const Schedule& schedule, Timestamp decided_until) {
  ScheduleState state;
  state.name = schedule.name;
  state.definition_hash = definition_hash(schedule);
  state.decided_until = decided_until;
  return state;
}

SchedulePlan plan(const Schedule& schedule, const std::string& decided_until,
                  const std::string& now) {
  return ScheduleCore({schedule}).plan({{state_of(schedule, at(decided_until))}, at(now)});
}

std::vector<std::string> slots_of(const SchedulePlan& plan) {
  std::vector<std::string> slots;
  for (const auto& fire : plan.fires) {
    for (const auto& slot : fire.request.slots)
      slots.push_back(timestamp_text(slot.at).substr(0, 16));
  }
  return slots;
}

TEST(SchedulePlan, before_its_slot_nothing_is_run_and_the_slot_is_when_to_look_again) {
  const auto planned = plan(hourly(), "2026-01-01T10:00", "2026-01-01T10:59");
  EXPECT_THAT(planned.fires, IsEmpty());
  EXPECT_EQ(planned.next, at("2026-01-01T11:00"));
}

TEST(SchedulePlan, a_slot_that_has_come_is_run_with_its_event) {
  const auto planned = plan(hourly(), "2026-01-01T10:00", "2026-01-01T11:00");
  ASSERT_THAT(planned.fires, SizeIs(1));
  const auto& fire = planned.fires[0];
  EXPECT_EQ(fire.request.name, "hourly");
  EXPECT_EQ(fire.request.definition_hash, definition_hash(hourly()));
  EXPECT_EQ(fire.request.decided_until, at("2026-01-01T10:00"));
  EXPECT_EQ(fire.request.decide_until, at("2026-01-01T11:00"));
  EXPECT_EQ(fire.passed_over, 0);
  ASSERT_THAT(fire.request.slots, SizeIs(1));
  EXPECT_EQ(fire.request.slots[0].at, at("2026-01-01T11:00"));
  EXPECT_EQ(fire.request.slots[0].event.headers.at("postrider-slot"),
            "2026-01-01T11:00:00.000000Z");
  EXPECT_EQ(planned.next, at("2026-01-01T12:00"));
}

TEST(SchedulePlan, after_an_outage_skip_runs_nothing_and_decides_all) {
  const auto planned = plan(hourly(Missed::skip), "2026-01-01T10:00", "2026-01-02T10:30");
  ASSERT_THAT(planned.fires, SizeIs(1));
  EXPECT_THAT(slots_of(planned), IsEmpty());
  EXPECT_EQ(planned.fires[0].passed_over, 24);
  EXPECT_EQ(planned.fires[0].request.decide_until, at("2026-01-02T10:00"));
}

TEST(SchedulePlan, skip_runs_the_latest_slot_when_it_has_only_just_come) {
  const auto schedule = hourly(Missed::skip);
  const ScheduleCore core({schedule});
  const auto slot = at("2026-01-02T10:00");
  const auto at_time = [&](Timestamp now) {
    return core.plan({{state_of(schedule, at("2026-01-01T10:00"))}, now});
  };
  const auto in_time = at_time(slot + seconds(59));
  EXPECT_THAT(slots_of(in_time), ElementsAre("2026-01-02T10:00"));
  EXPECT_EQ(in_time.fires[0].passed_over, 23);
  EXPECT_THAT(slots_of(at_time(slot + seconds(60))), IsEmpty());
}

TEST(SchedulePlan, after_an_outage_one_runs_the_latest) {
  const auto planned = plan(hourly(Missed::one), "2026-01-01T10:00", "2026-01-02T10:30");
  EXPECT_THAT(slots_of(planned), ElementsAre("2026-01-02T10:00"));
  EXPECT_EQ(planned.fires[0].passed_over, 23);
}

TEST(SchedulePlan, after_an_outage_all_runs_the_latest_so_many_oldest_first) {
  const auto planned = plan(hourly(Missed::all, 3), "2026-01-01T10:00", "2026-01-02T10:30");
  EXPECT_THAT(slots_of(planned),
              ElementsAre("2026-01-02T08:00", "2026-01-02T09:00", "2026-01-02T10:00"));
  EXPECT_EQ(planned.fires[0].passed_over, 21);
  EXPECT_THAT(slots_of(plan(hourly(Missed::all, 3), "2026-01-01T10:00", "2026-01-01T12:30")),
              ElementsAre("2026-01-01T11:00", "2026-01-01T12:00"));
}

TEST(SchedulePlan, a_year_of_minutes_is_not_walked_through) {
  auto schedule = hourly(Missed::all, 2);
  schedule.cron = "* * * * *";
  const auto planned = plan(schedule, "2025-01-01T00:00", "2026-01-01T00:00");
  EXPECT_THAT(slots_of(planned), ElementsAre("2025-12-31T23:59", "2026-01-01T00:00"));
  EXPECT_EQ(planned.fires[0].passed_over, DueSlots::most_counted);
}

TEST(SchedulePlan, what_is_paused_changed_or_unknown_is_left_alone) {
  const auto schedule = hourly();
  const ScheduleCore core({schedule});
  const auto due = state_of(schedule, at("2026-01-01T10:00"));
  auto paused = due;
  paused.paused_at = due.decided_until;
  auto changed = due;
  changed.definition_hash = "another relay's";
  auto unknown = due;
  unknown.name = "other";
  for (const auto& state : {paused, changed, unknown}) {
    const auto planned = core.plan({{state}, at("2026-01-01T12:00")});
    EXPECT_THAT(planned.fires, IsEmpty());
    EXPECT_FALSE(planned.next);
  }
}

TEST(SchedulePlan, a_database_whose_clock_went_back_runs_nothing_twice) {
  const auto planned = plan(hourly(), "2026-01-01T12:00", "2026-01-01T10:30");
  EXPECT_THAT(planned.fires, IsEmpty());
  EXPECT_EQ(planned.next, at("2026-01-01T13:00"));
}

TEST(SchedulePlan, the_earliest_slot_of_all_is_when_to_look_again) {
  auto daily = hourly();
  daily.name = "daily";
  daily.cron = "@daily";
  const ScheduleCore core({daily, hourly()});
  const auto now = at("2026-01-01T10:30");
  const auto planned = core.plan({{state_of(daily, now), state_of(hourly(), now)}, now});
  EXPECT_EQ(planned.next, at("2026-01-01T11:00"));
}

}  // namespace
}  // namespace postrider::core
