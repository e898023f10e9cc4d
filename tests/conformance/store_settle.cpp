// What `Store::settle` promises: one fenced transaction, every change compare-and-set, repeatable.

#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<DeadLetter> dead_letters(StoreHarness& harness) {
  return value_of(harness.open_operations()->dead_letters({}, soon()));
}

/// A relay that was overtaken, with the claim it made before.
struct Overtaken {
  Overtaken(Store& store, ManualClock& clock)
      : old_owner(store, clock, "relay-1"), new_owner(store, clock, "relay-2") {
    old_owner.lease();
    batch = old_owner.claim_all();
    clock.advance(Claimant::lease_time + seconds(1));
    new_owner.lease();
  }

  Claimant old_owner;
  Claimant new_owner;
  ClaimedBatch batch;
};

TEST_P(StoreConformance, A_lost_token_applies_nothing_of_the_request) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto existing = store_delivery(*store_, relay, order_event("1"));
  const auto ids = add(*store_, {order_event("2")});
  relay.release();
  Overtaken overtaken(*store_, clock_);
  auto request = updating(overtaken.old_owner.settle_request(),
                          {update_of(existing, DeliveryStatus::completed)});
  request =
      routing(request, overtaken.batch.events.at(0), {delivery_of(overtaken.batch.events.at(0))});
  request.stopped_routes = {"out"};
  request.mark = overtaken.batch.mark;

  const auto settled = overtaken.old_owner.settle(request);

  EXPECT_THAT(settled.lost, SizeIs(request.leases.size()));
  EXPECT_THAT(ids_of(overtaken.new_owner.claim_all()), ElementsAre(ids[0]));
  EXPECT_THAT(ids_of(overtaken.new_owner.due()), ElementsAre(existing.id));
  const auto grant = overtaken.new_owner.lease();
  EXPECT_THAT(grant.paused_routes, IsEmpty());
  for (const auto& granted : grant.leases)
    EXPECT_EQ(granted.mark, ReadMark());
}

TEST_P(StoreConformance, One_lost_partition_among_many_applies_nothing_and_is_named) {
  const auto partitions = store_->traits().partitions;
  if (partitions < 2) GTEST_SKIP() << "this store has one partition";
  const auto orders = one_order_per_partition(partitions, 2);
  const auto ids = add(*store_, {order_event(orders[0]), order_event(orders[1])});
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto batch = relay.claim();
  auto request = routing(relay.settle_request(), batch.events.at(0));
  request = routing(request, batch.events.at(1));
  expect_ok(store_->release(std::vector{relay.leases().at(1)}, soon()));

  const auto settled = relay.settle(request);

  EXPECT_THAT(settled.lost, ElementsAre(Partition(1)));
  EXPECT_THAT(relay.claim_all().events, SizeIs(2));
}

TEST_P(StoreConformance, The_new_owner_settles_what_the_old_one_could_not) {
  add(*store_, {order_event("1")});
  Overtaken overtaken(*store_, clock_);
  const auto& claimed = overtaken.batch.events.at(0);
  overtaken.old_owner.settle(routing(overtaken.old_owner.settle_request(), claimed));

  const auto settled =
      overtaken.new_owner.settle(routing(overtaken.new_owner.settle_request(), claimed));

  EXPECT_THAT(settled.lost, IsEmpty());
  EXPECT_THAT(settled.stale_events, IsEmpty());
  EXPECT_THAT(overtaken.new_owner.claim_all().events, IsEmpty());
}

TEST_P(StoreConformance, A_released_lease_settles_nothing) {
  add(*store_, {order_event("1")});
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto batch = relay.claim();
  relay.release();

  const auto settled = relay.settle(routing(relay.settle_request(), batch.events.at(0)));

  EXPECT_THAT(settled.lost, SizeIs(relay.leases().size()));
  EXPECT_THAT(relay.claim_all().events, SizeIs(1));
}

TEST_P(StoreConformance, An_event_that_was_routed_already_is_stale_and_stores_no_delivery) {
  add(*store_, {order_event("1"), order_event("2")});
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto batch = relay.claim();
  const auto first = delivery_of(batch.events.at(0));
  relay.settle(routing(relay.settle_request(), batch.events[0], {first}));
  const auto second = delivery_of(batch.events.at(1));
  auto request = routing(relay.settle_request(), batch.events[0],
                         {delivery_of(batch.events[0], on_route("audit"))});
  request = routing(request, batch.events[1], {second});

  const auto settled = relay.settle(request);

  EXPECT_THAT(settled.stale_events, ElementsAre(batch.events[0].event->seq));
  EXPECT_THAT(ids_of(relay.due({"out", "audit"})), ElementsAre(first.id, second.id));
}

TEST_P(StoreConformance, A_repeated_request_is_harmless) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto existing = store_delivery(*store_, relay, order_event("1"));
  add(*store_, {order_event("2")});
  const auto batch = relay.claim();
  const auto stored = delivery_of(batch.events.at(0));
  auto request = routing(relay.settle_request(), batch.events[0], {stored});
  request = updating(request, {update_of(existing, DeliveryStatus::completed)});
  request.mark = batch.mark;
  request.stopped_routes = {"audit"};
  relay.settle(request);

  const auto again = relay.settle(request);

  EXPECT_THAT(again.lost, IsEmpty());
  EXPECT_THAT(again.stale_events, ElementsAre(batch.events[0].event->seq));
  EXPECT_THAT(again.stale_deliveries, ElementsAre(existing.id));
  EXPECT_THAT(ids_of(relay.due()), ElementsAre(stored.id));
  EXPECT_THAT(relay.lease().paused_routes, ElementsAre("audit"));
}

TEST_P(StoreConformance, A_repeated_delivery_row_is_left_as_it_is) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto row = store_held(*store_, relay, order_event("1"));
  auto request = relay.settle_request();
  request.deliveries = {row};

  const auto again = relay.settle(request);

  EXPECT_THAT(again.lost, IsEmpty());
  EXPECT_THAT(ids_of(relay.held()), ElementsAre(row.id));
}

TEST_P(StoreConformance, An_update_applies_to_the_row_that_the_relay_sees) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"));
  auto update = update_of(relay.due().deliveries.at(0), DeliveryStatus::pending);
  update.attempts = 1;
  update.dispatch_id = DispatchId(fresh_uuid());
  update.available_in = seconds(5);
  update.failure_code = "refused";
  update.failure_detail = "the queue is full";
  update.ambiguous = true;

  const auto settled = relay.settle(updating(relay.settle_request(), {update}));

  EXPECT_THAT(settled.stale_deliveries, IsEmpty());
  EXPECT_THAT(relay.due().deliveries, IsEmpty());
  clock_.advance(seconds(5));
  const auto batch = relay.due();
  ASSERT_THAT(batch.deliveries, SizeIs(1));
  const auto& row = batch.deliveries[0].delivery;
  EXPECT_EQ(row.status, DeliveryStatus::pending);
  EXPECT_EQ(row.attempts, 1);
  EXPECT_EQ(row.dispatch_id, update.dispatch_id);
  EXPECT_EQ(row.available_at, clock_.wall());
  EXPECT_EQ(row.failure_code, "refused");
  EXPECT_EQ(row.failure_detail, "the queue is full");
  EXPECT_TRUE(row.ambiguous);
}

struct StaleCase {
  const char* description;
  Change row;
  std::function<void(DeliveryUpdate&)> mistake;
};

TEST_P(StoreConformance, An_update_of_a_row_that_somebody_else_changed_is_stale) {
  using S = DeliveryStatus;
  const std::vector<StaleCase> cases = {
      {"another status", {}, [](auto& update) { update.expected_status = S::failed; }},
      {"another dispatch id", with_status(S::dispatched),
       [](auto& update) { update.expected_dispatch_id = DispatchId(fresh_uuid()); }},
      {"a dispatch id expected and none there",
       {},
       [](auto& update) { update.expected_dispatch_id = DispatchId(fresh_uuid()); }},
      {"no dispatch id expected and one there", with_status(S::dispatched),
       [](auto& update) { update.expected_dispatch_id.reset(); }},
      {"an unknown row", {}, [](auto& update) { update.id = DeliveryId(fresh_uuid()); }},
  };
  Claimant relay(*store_, clock_);
  relay.lease();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].description);
    const auto row = store_delivery(*store_, relay, order_event(std::to_string(i)), cases[i].row);
    auto update = update_of(row, S::completed);
    cases[i].mistake(update);

    const auto settled = relay.settle(updating(relay.settle_request(), {update}));

    EXPECT_THAT(settled.stale_deliveries, ElementsAre(update.id));
    const auto right = update_of(row, S::completed);
    EXPECT_THAT(relay.settle(updating(relay.settle_request(), {right})).stale_deliveries, IsEmpty())
        << "the row was changed all the same";
  }
}

TEST_P(StoreConformance, A_stale_update_does_not_stop_the_others) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto first = store_delivery(*store_, relay, order_event("1"));
  const auto second = store_delivery(*store_, relay, order_event("2"));
  auto stale = update_of(first, DeliveryStatus::completed);
  stale.expected_status = DeliveryStatus::dispatched;

  const auto settled = relay.settle(
      updating(relay.settle_request(), {stale, update_of(second, DeliveryStatus::completed)}));

  EXPECT_THAT(settled.stale_deliveries, ElementsAre(first.id));
  EXPECT_THAT(ids_of(relay.due()), ElementsAre(first.id));
}

TEST_P(StoreConformance, A_completed_delivery_makes_way_for_the_next) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto head =
      store_delivery(*store_, relay, order_event("1"), with_status(DeliveryStatus::dispatched));
  const auto next = store_delivery(*store_, relay, order_event("1"));
  EXPECT_THAT(relay.due().deliveries, IsEmpty());

  relay.settle(updating(relay.settle_request(), {update_of(head, DeliveryStatus::completed)}));

  EXPECT_THAT(ids_of(relay.due()), ElementsAre(next.id));
}

TEST_P(StoreConformance, A_dispatch_sets_its_time_and_its_deadline) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto row = store_delivery(*store_, relay, order_event("1"));
  clock_.advance(seconds(3));
  const auto dispatched_at = clock_.wall();
  auto update = update_of(row, DeliveryStatus::dispatched);
  update.dispatch_id = DispatchId(fresh_uuid());
  relay.settle(updating(relay.settle_request(), {update}));

  EXPECT_EQ(relay.due().next_in, row.timeout);
  clock_.advance(row.timeout + milliseconds(1));
  const auto batch = relay.due();
  ASSERT_THAT(batch.deliveries, SizeIs(1));
  EXPECT_EQ(batch.deliveries[0].delivery.dispatched_at, dispatched_at);
  EXPECT_EQ(batch.deliveries[0].delivery.delivery_timeout_at, dispatched_at + row.timeout);
  EXPECT_EQ(batch.deliveries[0].delivery.dispatch_id, update.dispatch_id);
}

TEST_P(StoreConformance, An_overdue_delivery_can_be_taken_back) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), with_status(DeliveryStatus::dispatched));
  clock_.advance(seconds(11));
  auto update = update_of(relay.due().deliveries.at(0), DeliveryStatus::pending);
  update.attempts = 1;
  relay.settle(updating(relay.settle_request(), {update}));

  const auto batch = relay.due();

  ASSERT_THAT(batch.deliveries, SizeIs(1));
  EXPECT_FALSE(batch.deliveries[0].overdue);
  EXPECT_EQ(batch.deliveries[0].delivery.status, DeliveryStatus::pending);
  EXPECT_EQ(batch.deliveries[0].delivery.attempts, 1);
  EXPECT_EQ(batch.deliveries[0].delivery.delivery_timeout_at, std::nullopt);
}

TEST_P(StoreConformance, A_delivery_that_failed_for_good_is_stamped) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto row = store_delivery(*store_, relay, order_event("1"));
  clock_.advance(seconds(3));
  auto update = update_of(row, DeliveryStatus::failed);
  update.attempts = 3;
  update.failure_code = "unroutable";
  update.failure_detail = "no queue took it";
  update.ambiguous = true;
  relay.settle(updating(relay.settle_request(), {update}));

  const auto letters = dead_letters(*harness_);

  ASSERT_THAT(letters, SizeIs(1));
  EXPECT_EQ(letters[0].delivery.id, row.id);
  EXPECT_EQ(letters[0].delivery.finished_at, clock_.wall());
  EXPECT_EQ(letters[0].delivery.attempts, 3);
  EXPECT_EQ(letters[0].delivery.failure_code, "unroutable");
  EXPECT_EQ(letters[0].delivery.failure_detail, "no queue took it");
  EXPECT_TRUE(letters[0].delivery.ambiguous);
}

TEST_P(StoreConformance, A_row_can_be_stored_as_failed_at_once) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto row = store_delivery(*store_, relay, order_event("1"), dead());

  const auto letters = dead_letters(*harness_);

  ASSERT_THAT(letters, SizeIs(1));
  EXPECT_EQ(letters[0].delivery.id, row.id);
  EXPECT_EQ(letters[0].delivery.finished_at, clock_.wall());
  EXPECT_EQ(letters[0].delivery.dispatch_id, row.dispatch_id);
}

TEST_P(StoreConformance, One_event_has_a_delivery_on_each_route) {
  add(*store_, {order_event("1")});
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto batch = relay.claim();
  const auto& claimed = batch.events.at(0);
  const auto out = delivery_of(claimed);
  const auto audit = delivery_of(claimed, on_route("audit"));
  relay.settle(routing(relay.settle_request(), claimed, {out, audit}));

  EXPECT_THAT(ids_of(relay.due({"out", "audit"})),
              ::testing::UnorderedElementsAre(out.id, audit.id));
}

TEST_P(StoreConformance, A_mark_is_stored_and_returned_by_the_next_lease) {
  add(*store_, {order_event("1")});
  Claimant relay(*store_, clock_);
  relay.lease();
  auto request = relay.settle_request();
  request.mark = relay.claim().mark;
  relay.settle(request);

  const auto renewed = relay.lease();
  relay.release();
  Claimant successor(*store_, clock_, "relay-2");
  const auto gained = successor.lease();

  ASSERT_THAT(renewed.leases, SizeIs(request.leases.size()));
  for (const auto& granted : renewed.leases)
    EXPECT_EQ(granted.mark, request.mark);
  ASSERT_THAT(gained.leases, SizeIs(request.leases.size()));
  for (const auto& granted : gained.leases)
    EXPECT_EQ(granted.mark, request.mark);
}

TEST_P(StoreConformance, A_mark_is_stored_on_the_partitions_of_the_request_only) {
  if (store_->traits().partitions < 2) GTEST_SKIP() << "this store has one partition";
  add(*store_, {order_event("1")});
  Claimant relay(*store_, clock_);
  relay.lease();
  auto request = relay.settle_request();
  request.mark = relay.claim().mark;
  request.leases = {relay.leases().at(1)};
  relay.settle(request);

  const auto grant = relay.lease();

  EXPECT_EQ(grant.leases.at(0).mark, ReadMark());
  EXPECT_EQ(grant.leases.at(1).mark, request.mark);
}

TEST_P(StoreConformance, A_settle_without_a_mark_keeps_the_stored_one) {
  add(*store_, {order_event("1")});
  Claimant relay(*store_, clock_);
  relay.lease();
  auto request = relay.settle_request();
  request.mark = relay.claim().mark;
  relay.settle(request);

  store_routed(*store_, relay, order_event("2"));

  EXPECT_EQ(relay.lease().leases.at(0).mark, request.mark);
}

TEST_P(StoreConformance, A_stopped_route_is_paused_for_everybody) {
  Claimant relay(*store_, clock_);
  relay.lease();
  auto request = relay.settle_request();
  request.stopped_routes = {"out"};
  relay.settle(request);
  relay.settle(request);

  EXPECT_THAT(relay.lease().paused_routes, ElementsAre("out"));
  const auto other = harness_->open_store();
  EXPECT_THAT(Claimant(*other, clock_, "relay-2").lease().paused_routes, ElementsAre("out"));
}

TEST_P(StoreConformance, An_empty_settle_tells_whether_the_leases_are_held) {
  Claimant relay(*store_, clock_);
  relay.lease();
  EXPECT_THAT(relay.settle(relay.settle_request()).lost, IsEmpty());

  Overtaken overtaken(*store_, clock_);
  EXPECT_THAT(relay.settle(relay.settle_request()).lost, ::testing::Not(IsEmpty()));
}

TEST_P(StoreConformance, A_lease_that_was_renewed_settles_what_was_claimed_before) {
  add(*store_, {order_event("1")});
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto batch = relay.claim();
  const auto request = routing(relay.settle_request(), batch.events.at(0));
  clock_.advance(seconds(20));
  relay.lease();
  clock_.advance(seconds(20));

  EXPECT_THAT(relay.settle(request).lost, IsEmpty());
}

TEST_P(StoreConformance, Thousands_of_rows_are_one_settle) {
  constexpr int count = 3000;
  std::vector<NewEvent> events;
  for (int i = 0; i < count; ++i)
    events.push_back(order_event(std::to_string(i)));
  add(*store_, events);
  Claimant relay(*store_, clock_);
  relay.lease();
  auto request = relay.settle_request();
  for (const auto& claimed : relay.claim().events) {
    request = routing(std::move(request), claimed, {delivery_of(claimed)});
  }
  relay.settle(request);
  const auto batch = relay.due();
  ASSERT_THAT(batch.deliveries, SizeIs(count));
  auto completing = relay.settle_request();
  for (const auto& row : batch.deliveries) {
    completing.updates.push_back(update_of(row, DeliveryStatus::completed));
  }

  EXPECT_THAT(relay.settle(completing).stale_deliveries, IsEmpty());
  EXPECT_THAT(relay.due().deliveries, IsEmpty());
  EXPECT_THAT(relay.claim_all().events, IsEmpty());
}

TEST_P(StoreConformance, What_was_settled_is_there_in_another_store_object) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto row = store_delivery(*store_, relay, order_event("1"));
  store_.reset();
  store_ = harness_->open_store();
  Claimant successor(*store_, clock_);
  successor.lease();

  EXPECT_THAT(ids_of(successor.due()), ElementsAre(row.id));
  EXPECT_THAT(successor.claim_all().events, IsEmpty());
}

}  // namespace
}  // namespace postrider::testing
