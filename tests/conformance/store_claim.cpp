// What `Store::claim` promises: every unrouted event is read once after each mark, in order.

#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_P(StoreConformance, An_empty_table_gives_an_empty_batch) {
  Claimant relay(*store_, clock_);
  relay.lease();

  const auto batch = relay.claim();

  EXPECT_THAT(batch.events, IsEmpty());
  EXPECT_FALSE(batch.more);
}

TEST_P(StoreConformance, A_mark_stands_after_the_events_it_was_returned_with) {
  Claimant relay(*store_, clock_);
  relay.lease();
  add(*store_, {order_event("1"), order_event("2")});
  const auto mark = relay.claim().mark;
  const auto later = add(*store_, {order_event("1"), order_event("3")});

  EXPECT_THAT(ids_of(relay.claim(relay.claim_request({mark}))), ElementsAreArray(later));
  EXPECT_THAT(relay.claim().events, IsEmpty());
}

TEST_P(StoreConformance, A_mark_of_an_empty_table_stands_before_every_row) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto mark = relay.claim().mark;
  const auto ids = add(*store_, {order_event("1")});

  EXPECT_THAT(ids_of(relay.claim(relay.claim_request({mark}))), ElementsAreArray(ids));
}

TEST_P(StoreConformance, Claimed_but_unsettled_events_are_returned_again_from_the_old_mark) {
  const auto ids = add(*store_, {order_event("1"), order_event("2"), lone_event()});
  Claimant relay(*store_, clock_);
  relay.lease();
  relay.claim();

  EXPECT_THAT(ids_of(relay.claim_all()), ElementsAreArray(ids));
  EXPECT_THAT(ids_of(relay.claim_all()), ElementsAreArray(ids));
}

TEST_P(StoreConformance, Routed_events_are_not_returned_from_an_old_mark) {
  const auto ids = add(*store_, {order_event("1"), order_event("2"), order_event("3")});
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto batch = relay.claim();
  relay.settle(routing(relay.settle_request(), batch.events.at(1)));

  EXPECT_THAT(ids_of(relay.claim_all()), ElementsAre(ids[0], ids[2]));
}

TEST_P(StoreConformance, The_number_of_events_is_limited_and_more_says_that_there_are_others) {
  const auto ids = add(*store_, order_events("1", 5));
  Claimant relay(*store_, clock_);
  relay.lease();
  auto request = relay.claim_request({ReadMark()});
  request.limit = 2;

  const auto first = relay.claim(request);
  request.after = {first.mark};
  const auto second = relay.claim(request);
  request.after = {second.mark};
  const auto third = relay.claim(request);

  EXPECT_THAT(ids_of(first), ElementsAre(ids[0], ids[1]));
  EXPECT_TRUE(first.more);
  EXPECT_THAT(ids_of(second), ElementsAre(ids[2], ids[3]));
  EXPECT_TRUE(second.more);
  EXPECT_THAT(ids_of(third), ElementsAre(ids[4]));
  EXPECT_FALSE(third.more);
}

TEST_P(StoreConformance, A_batch_that_holds_exactly_the_rest_does_not_promise_more) {
  add(*store_, order_events("1", 2));
  Claimant relay(*store_, clock_);
  relay.lease();
  auto request = relay.claim_request({ReadMark()});
  request.limit = 2;
  request.bytes = 2;  // the payloads are "0" and "1"

  const auto batch = relay.claim(request);

  EXPECT_THAT(batch.events, SizeIs(2));
  EXPECT_FALSE(batch.more);
}

TEST_P(StoreConformance, The_payload_bytes_of_a_batch_are_limited) {
  const std::string kilobyte(1000, 'x');
  const auto ids =
      add(*store_, {order_event("1", kilobyte), order_event("1", kilobyte), order_event("1", "x")});
  Claimant relay(*store_, clock_);
  relay.lease();
  auto request = relay.claim_request({ReadMark()});
  request.bytes = 1999;

  const auto first = relay.claim(request);
  request.after = {first.mark};
  const auto second = relay.claim(request);

  EXPECT_THAT(ids_of(first), ElementsAre(ids[0]));
  EXPECT_TRUE(first.more);
  EXPECT_THAT(ids_of(second), ElementsAre(ids[1], ids[2]));
  EXPECT_FALSE(second.more);
}

TEST_P(StoreConformance, The_first_event_is_returned_whatever_it_weighs) {
  const auto ids = add(*store_, {order_event("1", std::string(5000, 'x')), order_event("1", "x")});
  Claimant relay(*store_, clock_);
  relay.lease();
  auto request = relay.claim_request({ReadMark()});
  request.bytes = 10;

  const auto batch = relay.claim(request);

  EXPECT_THAT(ids_of(batch), ElementsAre(ids[0]));
  EXPECT_TRUE(batch.more);
}

TEST_P(StoreConformance, Bytes_are_counted_as_bytes_and_not_as_characters) {
  const auto ids = add(*store_, {order_event("1", "\xf0\x9f\x93\xae"), order_event("1", "x")});
  Claimant relay(*store_, clock_);
  relay.lease();
  auto request = relay.claim_request({ReadMark()});
  request.bytes = 4;

  EXPECT_THAT(ids_of(relay.claim(request)), ElementsAre(ids[0]));
}

TEST_P(StoreConformance, Events_of_other_partitions_are_passed_over) {
  const auto partitions = store_->traits().partitions;
  if (partitions < 2) GTEST_SKIP() << "this store has one partition";
  const auto orders = one_order_per_partition(partitions, 2);
  const auto ids =
      add(*store_, {order_event(orders[0]), order_event(orders[1]), order_event(orders[0])});
  Claimant relay(*store_, clock_);
  relay.lease();
  auto request = relay.claim_request({ReadMark()});
  request.partitions = {Partition(0)};
  request.limit = 2;

  const auto batch = relay.claim(request);

  EXPECT_THAT(ids_of(batch), ElementsAre(ids[0], ids[2]));
  EXPECT_FALSE(batch.more);
}

TEST_P(StoreConformance, Without_partitions_nothing_is_returned) {
  add(*store_, {order_event("1")});
  Claimant relay(*store_, clock_);

  EXPECT_THAT(relay.claim_all().events, IsEmpty());
}

TEST_P(StoreConformance, What_is_unread_after_any_of_several_marks_is_returned) {
  Claimant relay(*store_, clock_);
  relay.lease();
  add(*store_, {order_event("1")});
  const auto early = relay.claim().mark;
  const auto between = add(*store_, {order_event("2")});
  const auto late = relay.claim().mark;
  const auto after = add(*store_, {order_event("3")});

  const auto expected = ElementsAre(between[0], after[0]);
  EXPECT_THAT(ids_of(relay.claim(relay.claim_request({early, late}))), expected);
  EXPECT_THAT(ids_of(relay.claim(relay.claim_request({late, early}))), expected);
  EXPECT_THAT(relay.claim(relay.claim_request({late, ReadMark()})).events, SizeIs(3));
}

TEST_P(StoreConformance, The_mark_after_several_marks_leaves_nothing_unread) {
  Claimant relay(*store_, clock_);
  relay.lease();
  add(*store_, {order_event("1")});
  const auto early = relay.claim().mark;
  const auto ids = add(*store_, order_events("2", 3));
  const auto late = relay.claim().mark;
  auto request = relay.claim_request({late, early});
  request.limit = 2;

  const auto first = relay.claim(request);
  request.after = {first.mark};
  const auto second = relay.claim(request);

  EXPECT_THAT(ids_of(first), ElementsAre(ids[0], ids[1]));
  EXPECT_THAT(ids_of(second), ElementsAre(ids[2]));
}

TEST_P(StoreConformance, A_mark_is_as_good_in_another_store_object) {
  Claimant relay(*store_, clock_);
  relay.lease();
  add(*store_, {order_event("1")});
  const auto text = relay.claim().mark.text();
  const auto later = add(*store_, {order_event("2")});
  store_.reset();
  store_ = harness_->open_store();

  Claimant successor(*store_, clock_);
  successor.lease();

  EXPECT_THAT(ids_of(successor.claim(successor.claim_request({ReadMark(text)}))),
              ElementsAreArray(later));
}

TEST_P(StoreConformance, Unsettled_events_survive_their_reader) {
  const auto ids = add(*store_, {order_event("1"), order_event("2")});
  Claimant relay(*store_, clock_);
  relay.lease();
  relay.claim();
  store_.reset();
  store_ = harness_->open_store();

  Claimant successor(*store_, clock_);
  successor.lease();

  EXPECT_THAT(ids_of(successor.claim()), ElementsAreArray(ids));
}

TEST_P(StoreConformance, A_delayed_event_is_returned_with_the_time_that_is_left) {
  auto event = order_event("1");
  event.available_at = clock_.wall() + seconds(5);
  add(*store_, {event, order_event("2")});
  Claimant relay(*store_, clock_);
  relay.lease();

  const auto batch = relay.claim();

  ASSERT_THAT(batch.events, SizeIs(2));
  EXPECT_EQ(batch.events[0].delay, milliseconds(5000));
  EXPECT_EQ(batch.events[1].delay, std::nullopt);
}

TEST_P(StoreConformance, An_event_whose_time_has_come_has_no_delay) {
  auto event = order_event("1");
  event.available_at = clock_.wall() + seconds(5);
  add(*store_, {event});
  Claimant relay(*store_, clock_);
  relay.lease();
  clock_.advance(seconds(5));

  const auto batch = relay.claim();

  ASSERT_THAT(batch.events, SizeIs(1));
  EXPECT_EQ(batch.events[0].delay, std::nullopt);
}

TEST_P(StoreConformance, A_malformed_row_says_why_and_stops_nobody) {
  const auto before = add(*store_, {order_event("1")});
  if (!harness_->plant_malformed_event()) GTEST_SKIP() << "no malformed event can be planted";
  const auto after = add(*store_, {order_event("2")});
  Claimant relay(*store_, clock_);
  relay.lease();

  const auto batch = relay.claim();

  ASSERT_THAT(batch.events, SizeIs(3));
  EXPECT_EQ(batch.events[0].event->id, before[0]);
  EXPECT_EQ(batch.events[0].malformed, "");
  EXPECT_NE(batch.events[1].malformed, "");
  EXPECT_EQ(batch.events[2].event->id, after[0]);
  EXPECT_EQ(batch.events[2].malformed, "");
}

TEST_P(StoreConformance, A_malformed_row_can_become_a_dead_letter) {
  if (!harness_->plant_malformed_event()) GTEST_SKIP() << "no malformed event can be planted";
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto batch = relay.claim();
  ASSERT_THAT(batch.events, SizeIs(1));
  const auto letter = delivery_of(batch.events[0], dead());
  relay.settle(routing(relay.settle_request(), batch.events[0], {letter}));

  EXPECT_THAT(relay.claim_all().events, IsEmpty());
  EXPECT_THAT(ids_of(value_of(harness_->open_operations()->dead_letters({}, soon()))),
              ElementsAre(letter.id));
}

TEST_P(StoreConformance, Events_added_by_two_stores_are_all_read) {
  const auto other = harness_->open_store();
  std::vector<EventId> ids;
  for (int i = 0; i < 10; ++i) {
    ids.push_back(add(i % 2 == 0 ? *store_ : *other, {order_event("1")}).at(0));
  }
  Claimant relay(*store_, clock_);
  relay.lease();

  EXPECT_THAT(ids_of(relay.claim()), ElementsAreArray(ids));
}

}  // namespace
}  // namespace postrider::testing
