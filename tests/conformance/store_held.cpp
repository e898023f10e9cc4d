// What `Store::held` promises: events without a valid route wait where a relay finds them.

#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A settle that sends a held event on its way.
SettleRequest releasing(const Claimant& relay, const HeldEvent& held,
                        std::vector<NewDelivery> deliveries = {}) {
  auto request = routing(relay.settle_request(), held.claimed, std::move(deliveries));
  request.released = {held.delivery};
  return request;
}

TEST_P(StoreConformance, A_held_event_is_found_again_whole) {
  auto written = order_event("1", std::string("\0\xff", 2));
  written.headers = {{"trace", "00-ab"}};
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto row = store_held(*store_, relay, written);

  const auto batch = relay.held();

  ASSERT_THAT(batch.events, SizeIs(1));
  EXPECT_EQ(batch.events[0].delivery, row.id);
  EXPECT_EQ(batch.events[0].claimed.partition, row.partition);
  EXPECT_EQ(batch.events[0].claimed.malformed, "");
  EXPECT_EQ(batch.events[0].claimed.delay, std::nullopt);
  const auto& event = *batch.events[0].claimed.event;
  EXPECT_EQ(event.id, *written.id);
  EXPECT_EQ(event.seq, row.event_seq);
  EXPECT_EQ(event.payload, written.payload);
  EXPECT_EQ(event.headers, written.headers);
}

TEST_P(StoreConformance, Without_held_events_the_batch_is_empty) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"));

  EXPECT_THAT(relay.held().events, IsEmpty());
}

TEST_P(StoreConformance, Reading_held_events_changes_nothing) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto row = store_held(*store_, relay, order_event("1"));
  relay.held();

  EXPECT_THAT(ids_of(relay.held()), ElementsAre(row.id));
}

TEST_P(StoreConformance, A_held_event_is_not_claimed_again) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_held(*store_, relay, order_event("1"));

  EXPECT_THAT(relay.claim_all().events, IsEmpty());
}

TEST_P(StoreConformance, A_held_event_is_not_due) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_held(*store_, relay, order_event("1"));

  EXPECT_THAT(relay.due({"out", ""}).deliveries, IsEmpty());
}

TEST_P(StoreConformance, Held_events_are_paged_by_seq) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto first = store_held(*store_, relay, order_event("2"));
  const auto second = store_held(*store_, relay, order_event("1"));
  const auto third = store_held(*store_, relay, lone_event());
  auto request = relay.held_request();
  request.limit = 2;

  EXPECT_THAT(ids_of(relay.held(request)), ElementsAre(first.id, second.id));
  request.after = second.event_seq;
  EXPECT_THAT(ids_of(relay.held(request)), ElementsAre(third.id));
  request.after = third.event_seq;
  EXPECT_THAT(relay.held(request).events, IsEmpty());
}

TEST_P(StoreConformance, Held_events_of_other_partitions_are_left_out) {
  const auto partitions = store_->traits().partitions;
  if (partitions < 2) GTEST_SKIP() << "this store has one partition";
  const auto orders = one_order_per_partition(partitions, 2);
  Claimant relay(*store_, clock_);
  relay.lease();
  store_held(*store_, relay, order_event(orders[0]));
  const auto row = store_held(*store_, relay, order_event(orders[1]));
  auto request = relay.held_request();
  request.partitions = {Partition(1)};

  EXPECT_THAT(ids_of(relay.held(request)), ElementsAre(row.id));
}

TEST_P(StoreConformance, A_held_event_tells_its_delay) {
  auto event = order_event("1");
  event.available_at = clock_.wall() + seconds(5);
  Claimant relay(*store_, clock_);
  relay.lease();
  store_held(*store_, relay, event);

  EXPECT_EQ(relay.held().events.at(0).claimed.delay, seconds(5));
}

TEST_P(StoreConformance, A_released_event_goes_its_way) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_held(*store_, relay, order_event("1"));
  const auto held = relay.held().events.at(0);
  const auto delivery = delivery_of(held.claimed);

  const auto settled = relay.settle(releasing(relay, held, {delivery}));

  EXPECT_THAT(settled.stale_events, IsEmpty());
  EXPECT_THAT(relay.held().events, IsEmpty());
  EXPECT_THAT(relay.claim_all().events, IsEmpty());
  EXPECT_THAT(ids_of(relay.due()), ElementsAre(delivery.id));
}

TEST_P(StoreConformance, A_repeated_release_is_harmless) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_held(*store_, relay, order_event("1"));
  const auto held = relay.held().events.at(0);
  const auto request = releasing(relay, held, {delivery_of(held.claimed)});
  relay.settle(request);

  const auto again = relay.settle(request);

  EXPECT_THAT(again.lost, IsEmpty());
  EXPECT_THAT(again.stale_events, ElementsAre(held.claimed.event->seq));
  EXPECT_THAT(relay.due().deliveries, SizeIs(1));
}

TEST_P(StoreConformance, A_lost_token_releases_nothing) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto row = store_held(*store_, relay, order_event("1"));
  const auto request = releasing(relay, relay.held().events.at(0));
  relay.release();

  EXPECT_THAT(relay.settle(request).lost, ::testing::Not(IsEmpty()));
  EXPECT_THAT(ids_of(relay.held()), ElementsAre(row.id));
}

TEST_P(StoreConformance, A_held_event_counts_as_held_and_as_unrouted_until_it_is_released) {
  const auto operations = harness_->open_operations();
  Claimant relay(*store_, clock_);
  relay.lease();
  store_held(*store_, relay, order_event("1"));

  const auto before = value_of(operations->status(clock_.wall(), soon()));
  relay.settle(releasing(relay, relay.held().events.at(0)));
  const auto after = value_of(operations->status(clock_.wall(), soon()));

  ASSERT_THAT(before.routes, SizeIs(1));
  EXPECT_EQ(before.routes[0].route, "");
  EXPECT_EQ(before.routes[0].held, 1);
  EXPECT_EQ(before.events.unrouted, 1);
  for (const auto& counts : after.routes)
    EXPECT_EQ(counts.held, 0);
  EXPECT_EQ(after.events.unrouted, 0);
}

}  // namespace
}  // namespace postrider::testing
