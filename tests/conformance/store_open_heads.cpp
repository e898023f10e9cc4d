// Which rows make an aggregate wait: `ClaimedBatch::open_heads`.

#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const OpenHead order_1_on_out{"out", "order/1"};

/// Heads that a relay sees when one more event of order/1 arrives.
std::vector<OpenHead> heads_of_order_1(Store& store, Claimant& relay) {
  add(store, {order_event("1")});
  return relay.claim().open_heads;
}

TEST_P(StoreConformance, Without_deliveries_no_head_is_open) {
  Claimant relay(*store_, clock_);
  relay.lease();

  EXPECT_THAT(heads_of_order_1(*store_, relay), IsEmpty());
}

struct HeadCase {
  const char* description;
  Change row;
  bool is_open;
};

TEST_P(StoreConformance, A_head_is_open_while_its_row_blocks) {
  using S = DeliveryStatus;
  const std::vector<HeadCase> cases = {
      {"pending and due", with_status(S::pending), true},
      {"pending and delayed", due_in(std::chrono::hours(1)), true},
      {"dispatched", with_status(S::dispatched), true},
      {"failed under halt", dead(OnFailed::halt), true},
      {"failed under skip", dead(OnFailed::skip), false},
      {"failed under stop", dead(OnFailed::stop), false},
      {"completed", with_status(S::completed), false},
      {"without ordering key", unordered(), false},
  };
  Claimant relay(*store_, clock_);
  relay.lease();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto order = std::to_string(i);
    store_delivery(*store_, relay, order_event(order), cases[i].row);
    add(*store_, {order_event(order)});

    const auto heads = relay.claim().open_heads;

    const auto expected =
        cases[i].is_open ? std::vector{OpenHead{"out", "order/" + order}} : std::vector<OpenHead>{};
    EXPECT_EQ(heads, expected) << cases[i].description;
  }
}

TEST_P(StoreConformance, A_held_event_blocks_nobody) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_held(*store_, relay, order_event("1"));

  EXPECT_THAT(heads_of_order_1(*store_, relay), IsEmpty());
}

TEST_P(StoreConformance, A_discarded_dead_letter_blocks_nobody) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), dead());
  value_of(
      harness_->open_operations()->dead_discard({}, {"ann", "given up"}, clock_.wall(), soon()));

  EXPECT_THAT(heads_of_order_1(*store_, relay), IsEmpty());
}

TEST_P(StoreConformance, A_cancelled_delivery_blocks_nobody) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto row = store_delivery(*store_, relay, order_event("1"));
  relay.settle(updating(relay.settle_request(), {update_of(row, DeliveryStatus::cancelled)}));

  EXPECT_THAT(heads_of_order_1(*store_, relay), IsEmpty());
}

TEST_P(StoreConformance, The_next_generation_blocks_in_place_of_its_dead_letter) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), dead(OnFailed::halt));
  value_of(harness_->open_operations()->dead_retry({}, {"ann", "fixed"}, clock_.wall(), soon()));

  EXPECT_THAT(heads_of_order_1(*store_, relay), ElementsAre(order_1_on_out));

  const auto retried = relay.due();
  ASSERT_THAT(retried.deliveries, ::testing::SizeIs(1));
  relay.settle(updating(relay.settle_request(),
                        {update_of(retried.deliveries[0], DeliveryStatus::completed)}));
  EXPECT_THAT(heads_of_order_1(*store_, relay), IsEmpty());
}

TEST_P(StoreConformance, Heads_of_aggregates_that_are_not_in_the_batch_are_left_out) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("2"));

  EXPECT_THAT(heads_of_order_1(*store_, relay), IsEmpty());
}

TEST_P(StoreConformance, Heads_are_told_per_route_and_once) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"));
  store_delivery(*store_, relay, order_event("1"));
  store_delivery(*store_, relay, order_event("1"), on_route("audit"));

  EXPECT_THAT(heads_of_order_1(*store_, relay),
              UnorderedElementsAre(order_1_on_out, OpenHead{"audit", "order/1"}));
}

TEST_P(StoreConformance, An_open_head_of_the_global_key_is_told_to_everybody) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("2"), ordered_globally());
  add(*store_, {lone_event()});

  EXPECT_THAT(relay.claim().open_heads,
              ElementsAre(OpenHead{"out", std::string(global_ordering_key)}));
}

TEST_P(StoreConformance, A_head_of_the_global_key_is_told_across_partitions) {
  const auto partitions = store_->traits().partitions;
  if (partitions < 2) GTEST_SKIP() << "this store has one partition";
  const auto orders = one_order_per_partition(partitions, 2);
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event(orders[0]), ordered_globally());
  add(*store_, {order_event(orders[1])});
  auto request = relay.claim_request({ReadMark()});
  request.partitions = {Partition(1)};

  EXPECT_THAT(relay.claim(request).open_heads,
              ElementsAre(OpenHead{"out", std::string(global_ordering_key)}));
}

TEST_P(StoreConformance, Open_heads_of_held_events_are_told_as_well) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_held(*store_, relay, order_event("1"));
  store_delivery(*store_, relay, order_event("1"));
  store_delivery(*store_, relay, order_event("2"));

  EXPECT_THAT(relay.held().open_heads, ElementsAre(order_1_on_out));
}

}  // namespace
}  // namespace postrider::testing
