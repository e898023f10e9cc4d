// What the memory store promises beyond the conformance suite, for simulations above all.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <postrider/testing/manual_clock.hpp>
#include <postrider/testing/memory_store.hpp>

namespace postrider::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

Deadline soon() {
  return Deadline::after(std::chrono::seconds(10));
}

NewEvent event_of_order(const std::string& id) {
  NewEvent event;
  event.aggregate = Aggregate{"order", id};
  event.type = "order.placed";
  return event;
}

ClaimRequest claim_of_everything(std::int32_t partitions) {
  ClaimRequest request;
  for (std::int32_t i = 0; i < partitions; ++i)
    request.partitions.emplace_back(i);
  request.limit = 1000;
  request.bytes = 1U << 20U;
  return request;
}

/// Ids that a fresh database gives to events without one.
std::vector<EventId> ids_from_seed(std::uint64_t seed) {
  const ManualClock clock;
  const auto random = seeded_random(seed);
  const auto store = make_memory_store(make_memory_database(4, clock, *random));
  return store->add(std::vector{event_of_order("1"), event_of_order("2")}, soon()).value();
}

TEST(MemoryStore, The_same_calls_give_the_same_rows) {
  EXPECT_EQ(ids_from_seed(7), ids_from_seed(7));
  EXPECT_NE(ids_from_seed(7), ids_from_seed(8));
}

TEST(MemoryStore, Without_a_time_in_the_call_the_clock_of_the_database_counts) {
  ManualClock clock;
  const auto random = seeded_random(1);
  const auto store = make_memory_store(make_memory_database(1, clock, *random));
  clock.advance(std::chrono::seconds(5));
  auto delayed = event_of_order("1");
  delayed.available_at = clock.wall() + std::chrono::seconds(7);
  ASSERT_TRUE(store->add(std::vector{delayed}, soon()).ok());

  const auto batch = store->claim(claim_of_everything(1), soon()).value();

  ASSERT_THAT(batch.events, SizeIs(1));
  EXPECT_EQ(batch.events[0].event->created_at, clock.wall());
  EXPECT_EQ(batch.events[0].delay, std::chrono::seconds(7));
}

TEST(MemoryStore, A_mark_is_the_position_in_decimal) {
  const auto store = make_memory_store(make_memory_database(4));
  ASSERT_TRUE(store->add(std::vector{event_of_order("1"), event_of_order("2")}, soon()).ok());

  EXPECT_EQ(store->claim(claim_of_everything(4), soon()).value().mark, ReadMark("2"));
}

TEST(MemoryStore, A_mark_of_another_store_is_refused) {
  const auto store = make_memory_store(make_memory_database(1));
  for (const char* text : {"x", "1x", "0/16B3748:750", " 1", "99999999999999999999"}) {
    auto request = claim_of_everything(1);
    request.after = {ReadMark(text)};

    const auto refused = store->claim(request, soon());

    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument) << text;
  }
}

TEST(MemoryStore, A_malformed_event_can_be_planted) {
  const auto database = make_memory_database(1);

  const auto seq = plant_malformed_event(*database, "its headers cannot be read");

  const auto batch = make_memory_store(database)->claim(claim_of_everything(1), soon()).value();
  ASSERT_THAT(batch.events, SizeIs(1));
  EXPECT_EQ(batch.events[0].event->seq, seq);
  EXPECT_EQ(batch.events[0].malformed, "its headers cannot be read");
}

TEST(MemoryStore, Changes_by_people_are_audited_with_their_time) {
  const ManualClock clock;
  const auto database = make_memory_database(1);
  const auto operations = make_memory_operations(database);
  EXPECT_THAT(audit_of(*database), IsEmpty());
  const Operator ann{"ann", "maintenance"};

  ASSERT_TRUE(operations->route_pause("out", ann, clock.wall(), soon()).value());
  ASSERT_FALSE(operations->route_pause("out", ann, clock.wall(), soon()).value());

  const auto audit = audit_of(*database);
  ASSERT_THAT(audit, SizeIs(1));
  EXPECT_EQ(audit[0].at, clock.wall());
  EXPECT_EQ(audit[0].action, "route_pause");
  EXPECT_EQ(audit[0].subject, "out");
  EXPECT_EQ(audit[0].who.name, "ann");
  EXPECT_EQ(audit[0].who.reason, "maintenance");
}

TEST(MemoryStoreDeathTest, A_settle_that_names_a_partition_without_its_lease_is_a_defect) {
  const auto store = make_memory_store(make_memory_database(1));
  SettleRequest request;
  request.routed = {{Seq(1), Partition(0)}};

  EXPECT_DEATH(static_cast<void>(store->settle(request, soon())), "is_leased");
}

}  // namespace
}  // namespace postrider::testing
