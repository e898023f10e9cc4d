// What `Store::due` promises: deliveries that may be attempted now, and none that has to wait.

#include <algorithm>

#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_P(StoreConformance, Without_deliveries_nothing_is_due) {
  add(*store_, {order_event("1")});
  Claimant relay(*store_, clock_);
  relay.lease();

  const auto batch = relay.due();

  EXPECT_THAT(batch.deliveries, IsEmpty());
  EXPECT_FALSE(batch.more);
  EXPECT_EQ(batch.next_in, std::nullopt);
}

TEST_P(StoreConformance, A_due_delivery_comes_with_all_that_was_stored) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto stored = store_delivery(*store_, relay, order_event("1"), [](NewDelivery& row) {
    row.attempts = 2;
    row.retry_delays = {milliseconds(1), seconds(30), hours(720)};
    row.timeout = milliseconds(12'345);
    row.on_failed = OnFailed::skip;
    row.dispatch_id = DispatchId(fresh_uuid());
    row.failure_code = "timed_out";
    row.failure_detail = "\xd0\xbd\xd0\xb5\xd1\x82 'answer' \\ \"\xf0\x9f\x93\xae\"";
    row.ambiguous = true;
  });

  const auto batch = relay.due();

  ASSERT_THAT(batch.deliveries, SizeIs(1));
  EXPECT_EQ(batch.deliveries[0].partition, stored.partition);
  EXPECT_FALSE(batch.deliveries[0].overdue);
  EXPECT_EQ(batch.deliveries[0].malformed, "");
  const auto& row = batch.deliveries[0].delivery;
  EXPECT_EQ(row.id, stored.id);
  EXPECT_EQ(row.event_seq, stored.event_seq);
  EXPECT_EQ(row.event_id, stored.event_id);
  EXPECT_EQ(row.route, "out");
  EXPECT_EQ(row.ordering_key, "order/1");
  EXPECT_EQ(row.status, DeliveryStatus::pending);
  EXPECT_EQ(row.attempts, 2);
  EXPECT_EQ(row.retry_delays, stored.retry_delays);
  EXPECT_EQ(row.timeout, stored.timeout);
  EXPECT_EQ(row.on_failed, OnFailed::skip);
  EXPECT_EQ(row.dispatch_id, stored.dispatch_id);
  EXPECT_EQ(row.failure_code, stored.failure_code);
  EXPECT_EQ(row.failure_detail, stored.failure_detail);
  EXPECT_TRUE(row.ambiguous);
  EXPECT_EQ(row.generation, 1);
  EXPECT_EQ(row.available_at, clock_.wall());
  EXPECT_EQ(row.finished_at, std::nullopt);
}

TEST_P(StoreConformance, A_due_delivery_comes_with_its_whole_event) {
  auto written = order_event("1", std::string("\0\xff{}", 4));
  written.aggregate_version = 3;
  written.headers = {{"trace", "00-ab"}, {"\xd1\x8f", "\xf0\x9f\x93\xae"}};
  written.content_type = "application/octet-stream";
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto stored = store_delivery(*store_, relay, written);

  const auto batch = relay.due();

  ASSERT_THAT(batch.deliveries, SizeIs(1));
  const auto& event = *batch.deliveries[0].event;
  EXPECT_EQ(event.seq, stored.event_seq);
  EXPECT_EQ(event.id, *written.id);
  EXPECT_EQ(event.aggregate, written.aggregate);
  EXPECT_EQ(event.aggregate_version, written.aggregate_version);
  EXPECT_EQ(event.type, written.type);
  EXPECT_EQ(event.payload, written.payload);
  EXPECT_EQ(event.headers, written.headers);
  EXPECT_EQ(event.content_type, written.content_type);
}

TEST_P(StoreConformance, Lists_of_retry_delays_are_kept_whatever_their_length) {
  Claimant relay(*store_, clock_);
  relay.lease();
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, Route::most_retry_delays}) {
    store_delivery(*store_, relay, order_event("1"),
                   [&](NewDelivery& row) { row.retry_delays.assign(length, hours(720)); });
  }

  const auto batch = relay.due();

  ASSERT_THAT(batch.deliveries, SizeIs(3));
  EXPECT_THAT(batch.deliveries[0].delivery.retry_delays, IsEmpty());
  EXPECT_THAT(batch.deliveries[1].delivery.retry_delays, ElementsAre(hours(720)));
  EXPECT_THAT(batch.deliveries[2].delivery.retry_delays, SizeIs(Route::most_retry_delays));
}

TEST_P(StoreConformance, Reading_due_deliveries_changes_nothing) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto row = store_delivery(*store_, relay, order_event("1"));

  EXPECT_THAT(ids_of(relay.due()), ElementsAre(row.id));
  EXPECT_THAT(ids_of(relay.due()), ElementsAre(row.id));
}

TEST_P(StoreConformance, A_delayed_delivery_is_due_when_its_time_has_come_and_no_sooner) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto row = store_delivery(*store_, relay, order_event("1"), due_in(milliseconds(1500)));

  clock_.advance(milliseconds(1499));
  EXPECT_THAT(relay.due().deliveries, IsEmpty());
  clock_.advance(milliseconds(1));
  EXPECT_THAT(ids_of(relay.due()), ElementsAre(row.id));
}

TEST_P(StoreConformance, The_wait_for_the_next_due_time_is_told) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), due_in(seconds(9)));
  store_delivery(*store_, relay, order_event("2"), due_in(seconds(5)));
  store_delivery(*store_, relay, order_event("4"), due_in(seconds(7)));
  store_delivery(*store_, relay, order_event("3"), all_of({due_in(seconds(1)), on_route("off")}));

  EXPECT_EQ(relay.due().next_in, seconds(5));
  clock_.advance(seconds(2));
  EXPECT_EQ(relay.due().next_in, seconds(3));
}

TEST_P(StoreConformance, The_wait_for_the_next_due_time_counts_asked_partitions_only) {
  const auto partitions = store_->traits().partitions;
  if (partitions < 2) GTEST_SKIP() << "this store has one partition";
  const auto orders = one_order_per_partition(partitions, 2);
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event(orders[0]), due_in(seconds(1)));
  store_delivery(*store_, relay, order_event(orders[1]), due_in(seconds(5)));
  auto request = relay.due_request();
  request.partitions = {Partition(1)};

  EXPECT_EQ(relay.due(request).next_in, seconds(5));
}

TEST_P(StoreConformance, The_deadline_of_a_dispatched_delivery_is_a_time_to_come_back) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), with_status(DeliveryStatus::dispatched));

  const auto batch = relay.due();

  EXPECT_THAT(batch.deliveries, IsEmpty());
  EXPECT_EQ(batch.next_in, seconds(10));
}

TEST_P(StoreConformance, What_waits_behind_a_dead_letter_has_no_due_time) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), dead());
  store_delivery(*store_, relay, order_event("1"));

  const auto batch = relay.due();

  EXPECT_THAT(batch.deliveries, IsEmpty());
  EXPECT_EQ(batch.next_in, std::nullopt);
}

struct FollowerCase {
  const char* description;
  Change head;
  bool follower_is_due;
};

TEST_P(StoreConformance, A_delivery_waits_behind_a_head_that_blocks_and_cannot_go) {
  using S = DeliveryStatus;
  const std::vector<FollowerCase> cases = {
      {"delayed", due_in(hours(1)), false},
      {"dispatched", with_status(S::dispatched), false},
      {"failed under halt", dead(OnFailed::halt), false},
      {"failed under skip", dead(OnFailed::skip), true},
      {"failed under stop", dead(OnFailed::stop), true},
      {"completed", with_status(S::completed), true},
      {"delayed without key", all_of({unordered(), due_in(hours(1))}), true},
      {"delayed on another route", all_of({on_route("off"), due_in(hours(1))}), true},
      {"delayed under the global key", all_of({ordered_globally(), due_in(hours(1))}), true},
  };
  Claimant relay(*store_, clock_);
  relay.lease();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto order = std::to_string(i);
    store_delivery(*store_, relay, order_event(order), cases[i].head);
    const auto follower = store_delivery(*store_, relay, order_event(order));

    const auto due = ids_of(relay.due());

    EXPECT_EQ(std::count(due.begin(), due.end(), follower.id), cases[i].follower_is_due ? 1 : 0)
        << "behind a head that is " << cases[i].description;
  }
}

TEST_P(StoreConformance, Of_a_key_an_unbroken_run_is_returned_from_the_head_on) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto first = store_delivery(*store_, relay, order_event("1"));
  const auto second = store_delivery(*store_, relay, order_event("1"));
  store_delivery(*store_, relay, order_event("1"), due_in(hours(1)));
  store_delivery(*store_, relay, order_event("1"));

  EXPECT_THAT(ids_of(relay.due()), ElementsAre(first.id, second.id));
}

TEST_P(StoreConformance, Other_keys_do_not_wait) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), due_in(hours(1)));
  const auto other = store_delivery(*store_, relay, order_event("2"));
  const auto lone = store_delivery(*store_, relay, lone_event());

  EXPECT_THAT(ids_of(relay.due()), ElementsAre(other.id, lone.id));
}

TEST_P(StoreConformance, Without_a_key_nothing_waits) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), all_of({unordered(), due_in(hours(1))}));
  store_delivery(*store_, relay, order_event("1"),
                 all_of({unordered(), with_status(DeliveryStatus::dispatched)}));
  const auto third = store_delivery(*store_, relay, order_event("1"), unordered());

  EXPECT_THAT(ids_of(relay.due()), ElementsAre(third.id));
}

TEST_P(StoreConformance, A_dispatched_delivery_is_overdue_when_its_deadline_has_passed) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto row =
      store_delivery(*store_, relay, order_event("1"), with_status(DeliveryStatus::dispatched));
  const auto dispatched_at = clock_.wall();

  clock_.advance(milliseconds(9999));
  EXPECT_THAT(relay.due().deliveries, IsEmpty());
  clock_.advance(milliseconds(2));
  const auto batch = relay.due();

  ASSERT_THAT(batch.deliveries, SizeIs(1));
  EXPECT_TRUE(batch.deliveries[0].overdue);
  EXPECT_EQ(batch.deliveries[0].delivery.status, DeliveryStatus::dispatched);
  EXPECT_EQ(batch.deliveries[0].delivery.dispatch_id, row.dispatch_id);
  EXPECT_EQ(batch.deliveries[0].delivery.dispatched_at, dispatched_at);
  EXPECT_EQ(batch.deliveries[0].delivery.delivery_timeout_at, dispatched_at + seconds(10));
}

TEST_P(StoreConformance, Deliveries_are_returned_by_seq_over_all_routes_and_keys) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto first = store_delivery(*store_, relay, order_event("2"), on_route("audit"));
  const auto second = store_delivery(*store_, relay, order_event("1"));
  const auto third = store_delivery(*store_, relay, order_event("2"));

  EXPECT_THAT(ids_of(relay.due({"out", "audit"})), ElementsAre(first.id, second.id, third.id));
}

TEST_P(StoreConformance, Only_deliveries_of_the_routes_asked_for_are_returned) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"));
  const auto audit = store_delivery(*store_, relay, order_event("1"), on_route("audit"));

  EXPECT_THAT(ids_of(relay.due({"audit"})), ElementsAre(audit.id));
  EXPECT_THAT(relay.due(std::vector<std::string>{}).deliveries, IsEmpty());
}

TEST_P(StoreConformance, Only_deliveries_of_the_partitions_asked_for_are_returned) {
  const auto partitions = store_->traits().partitions;
  if (partitions < 2) GTEST_SKIP() << "this store has one partition";
  const auto orders = one_order_per_partition(partitions, 2);
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event(orders[0]));
  const auto row = store_delivery(*store_, relay, order_event(orders[1]));
  auto request = relay.due_request();
  request.partitions = {Partition(1)};

  EXPECT_THAT(ids_of(relay.due(request)), ElementsAre(row.id));
}

TEST_P(StoreConformance, The_head_of_the_global_key_counts_in_whatever_partition_it_lies) {
  const auto partitions = store_->traits().partitions;
  if (partitions < 2) GTEST_SKIP() << "this store has one partition";
  const auto orders = one_order_per_partition(partitions, 2);
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto head = store_delivery(*store_, relay, order_event(orders[0]), ordered_globally());
  const auto next = store_delivery(*store_, relay, order_event(orders[1]), ordered_globally());
  auto narrow = relay.due_request();
  narrow.partitions = {Partition(1)};

  EXPECT_THAT(relay.due(narrow).deliveries, IsEmpty());
  EXPECT_THAT(ids_of(relay.due()), ElementsAre(head.id, next.id));
}

TEST_P(StoreConformance, The_number_of_deliveries_is_limited_from_the_front) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto first = store_delivery(*store_, relay, order_event("1"));
  const auto second = store_delivery(*store_, relay, order_event("1"));
  store_delivery(*store_, relay, order_event("2"));
  auto request = relay.due_request();
  request.limit = 2;

  const auto batch = relay.due(request);

  EXPECT_THAT(ids_of(batch), ElementsAre(first.id, second.id));
  EXPECT_TRUE(batch.more);
  request.limit = 3;
  EXPECT_FALSE(relay.due(request).more);
}

TEST_P(StoreConformance, The_payload_bytes_of_due_deliveries_are_limited_except_for_the_first) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto heavy = store_delivery(*store_, relay, order_event("1", std::string(5000, 'x')));
  store_delivery(*store_, relay, order_event("2", "x"));
  auto request = relay.due_request();
  request.bytes = 10;

  const auto batch = relay.due(request);

  EXPECT_THAT(ids_of(batch), ElementsAre(heavy.id));
  EXPECT_TRUE(batch.more);
}

TEST_P(StoreConformance, A_run_does_not_lose_its_middle_to_the_limit_of_bytes) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto first = store_delivery(*store_, relay, order_event("1", "x"));
  store_delivery(*store_, relay, order_event("1", std::string(5000, 'x')));
  store_delivery(*store_, relay, order_event("1", "x"));
  auto request = relay.due_request();
  request.bytes = 10;

  EXPECT_THAT(ids_of(relay.due(request)), ElementsAre(first.id));
}

TEST_P(StoreConformance, A_delivery_of_a_malformed_event_says_so) {
  if (!harness_->plant_malformed_event()) GTEST_SKIP() << "no malformed event can be planted";
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto claimed = relay.claim();
  ASSERT_THAT(claimed.events, SizeIs(1));
  relay.settle(
      routing(relay.settle_request(), claimed.events[0], {delivery_of(claimed.events[0])}));

  const auto batch = relay.due();

  ASSERT_THAT(batch.deliveries, SizeIs(1));
  EXPECT_NE(batch.deliveries[0].malformed, "");
}

}  // namespace
}  // namespace postrider::testing
