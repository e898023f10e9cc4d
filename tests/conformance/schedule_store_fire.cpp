// Slots run: once, with their event, or not at all.
#include <atomic>
#include <chrono>
#include <thread>

#include "conformance/schedule_store_builders.hpp"

namespace postrider::testing {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST_P(ScheduleStoreConformance, A_slot_becomes_an_event) {
  const auto schedule = hourly([](Schedule& changed) {
    changed.aggregate = Aggregate{"report", "daily"};
    changed.payload = R"({"kind":"daily"})";
  });
  register_one(schedule);
  clock_.advance(hours(1) + minutes(1));
  const auto answer = fire(fire_request({hour(1)}, schedule));
  EXPECT_TRUE(answer.fired);
  ASSERT_THAT(answer.event_ids, SizeIs(1));
  ASSERT_TRUE(answer.event_ids[0]);
  const auto found = state();
  EXPECT_EQ(found.decided_until, hour(1));
  EXPECT_EQ(found.last_slot_at, hour(1));
  EXPECT_EQ(found.last_event_id, answer.event_ids[0]);
  const auto event = value_of(
      harness_->open_operations()->event(*answer.event_ids[0], /*with_payload=*/true, soon()));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->summary.type, "tick");
  EXPECT_EQ(event->summary.aggregate, (Aggregate{"report", "daily"}));
  EXPECT_EQ(event->summary.state, EventState::unrouted);
  EXPECT_EQ(event->payload, R"({"kind":"daily"})");
  EXPECT_THAT(event->header_names, UnorderedElementsAre("postrider-schedule", "postrider-slot"));
}

TEST_P(ScheduleStoreConformance, Several_slots_become_events_in_their_order) {
  register_one(hourly());
  clock_.advance(hours(3));
  const auto answer = fire(fire_request({hour(1), hour(2), hour(3)}));
  ASSERT_THAT(answer.event_ids, SizeIs(3));
  std::vector<std::optional<EventId>> written;
  for (const auto& event : events())
    written.insert(written.begin(), event.id);
  EXPECT_EQ(written, answer.event_ids);
  EXPECT_EQ(state().last_slot_at, hour(3));
  EXPECT_EQ(state().last_event_id, answer.event_ids.back());
}

TEST_P(ScheduleStoreConformance, Slots_are_passed_over_without_an_event) {
  register_one(hourly());
  clock_.advance(hours(3));
  auto request = fire_request({});
  request.decide_until = hour(3);
  EXPECT_TRUE(fire(request).fired);
  EXPECT_EQ(state().decided_until, hour(3));
  EXPECT_FALSE(state().last_slot_at);
  EXPECT_THAT(events(), IsEmpty());
}

TEST_P(ScheduleStoreConformance, Of_two_that_decided_from_the_same_state_one_runs_the_slot) {
  register_one(hourly());
  clock_.advance(hours(1));
  const auto request = fire_request({hour(1)});
  EXPECT_TRUE(fire(request).fired);
  const auto late = fire(request);
  EXPECT_FALSE(late.fired);
  EXPECT_THAT(late.event_ids, IsEmpty());
  EXPECT_THAT(events(), SizeIs(1));
}

TEST_P(ScheduleStoreConformance, Of_many_at_once_one_runs_the_slot) {
  register_one(hourly());
  constexpr int rounds = 10;
  for (int round = 1; round <= rounds; ++round) {
    clock_.advance(hours(1));
    const auto request = fire_request({hour(round)});
    std::atomic<int> fired = 0;
    std::vector<std::thread> relays;
    for (int relay = 0; relay < 4; ++relay) {
      relays.emplace_back([&] {
        const auto own = harness_->open_schedule_store();
        if (value_of(own->fire(request, soon())).fired) ++fired;
      });
    }
    for (auto& relay : relays)
      relay.join();
    EXPECT_EQ(fired, 1) << "round " << round;
  }
  EXPECT_THAT(events(), SizeIs(rounds));
}

TEST_P(ScheduleStoreConformance, A_slot_that_has_run_never_runs_again) {
  register_one(hourly());
  clock_.advance(hours(1));
  EXPECT_TRUE(fire(fire_request({hour(1)})).fired);
  // By mistake, the past is open once more.
  value_of(store_->pause("hourly", operator_ann(), now(), soon()));
  value_of(store_->resume("hourly", operator_ann(), hour(0), soon()));
  clock_.advance(hours(1));
  const auto answer = fire(fire_request({hour(1), hour(2)}));
  EXPECT_TRUE(answer.fired);
  ASSERT_THAT(answer.event_ids, SizeIs(2));
  EXPECT_FALSE(answer.event_ids[0]);
  EXPECT_TRUE(answer.event_ids[1]);
  EXPECT_THAT(events(), SizeIs(2));
  EXPECT_EQ(state().last_slot_at, hour(2));
}

TEST_P(ScheduleStoreConformance, What_is_paused_changed_or_unknown_is_not_run) {
  const auto other = hourly([](Schedule& schedule) { schedule.payload = "[]"; });
  register_one(hourly());
  clock_.advance(hours(1));
  auto request = fire_request({hour(1)});
  register_one(other);
  EXPECT_FALSE(fire(request).fired) << "another definition";
  register_one(hourly());
  value_of(store_->pause("hourly", operator_ann(), now(), soon()));
  EXPECT_FALSE(fire(request).fired) << "paused";
  value_of(store_->forget("hourly", operator_ann(), now(), soon()));
  EXPECT_FALSE(fire(request).fired) << "forgotten";
  EXPECT_THAT(events(), IsEmpty());
}

TEST_P(ScheduleStoreConformance, An_event_that_cannot_be_written_leaves_its_slot_open) {
  register_one(hourly());
  clock_.advance(hours(2));
  auto request = fire_request({hour(1), hour(2)});
  for (auto& slot : request.slots) {  // two of one aggregate cannot have one version
    slot.event.aggregate = Aggregate{"order", "1"};
    slot.event.aggregate_version = 1;
  }
  EXPECT_FALSE(store_->fire(request, soon()));
  EXPECT_EQ(state().decided_until, hour(0));
  EXPECT_FALSE(state().last_slot_at);
  EXPECT_THAT(events(), IsEmpty());
  EXPECT_TRUE(fire(fire_request({hour(1), hour(2)})).fired);
  EXPECT_THAT(events(), SizeIs(2));
}

TEST_P(ScheduleStoreConformance, Rows_of_slots_do_not_grow_without_end) {
  if (!harness_->slots()) GTEST_SKIP() << "this store cannot tell its rows";
  register_one(hourly());
  constexpr int at_once = 100;
  constexpr int calls = static_cast<int>(ScheduleStore::kept_slots) / at_once + 1;
  for (int call = 0; call < calls; ++call) {
    std::vector<Timestamp> slots;
    for (int slot = 1; slot <= at_once; ++slot)
      slots.push_back(hour(call * at_once + slot));
    EXPECT_TRUE(fire(fire_request(slots)).fired);
  }
  EXPECT_EQ(harness_->slots(), static_cast<std::int64_t>(ScheduleStore::kept_slots));
}

}  // namespace postrider::testing
