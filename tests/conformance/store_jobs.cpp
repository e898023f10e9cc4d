// What `Store` and `Operations` promise of jobs: they are rows like others, but only workers take
// them. Taking and ending them is the job store suite's.

#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Operator bob{"bob", "the printer is back", ""};

Change job_named(std::string name, std::string unique_key) {
  return all_of({job(std::move(unique_key)),
                 [name = std::move(name)](NewDelivery& row) { row.job->policy.job = name; }});
}

DeliveryFilter everything() {
  DeliveryFilter filter;
  filter.history = true;
  filter.limit = 100;
  return filter;
}

std::vector<ListedDelivery> rows_of(StoreHarness& harness, const DeliveryFilter& filter,
                                    Timestamp now) {
  return value_of(harness.open_operations()->deliveries(filter, now, soon())).deliveries;
}

TEST_P(StoreConformance, A_job_is_stored_with_its_event_and_is_not_read_again) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto stored = store_delivery(*store_, relay, order_event("1"), job());

  EXPECT_THAT(relay.claim_all().events, IsEmpty());
  const auto rows = rows_of(*harness_, everything(), clock_.wall());
  ASSERT_THAT(rows, SizeIs(1));
  const auto& row = rows[0].delivery;
  EXPECT_EQ(row.id, stored.id);
  EXPECT_EQ(row.event_id, stored.event_id);
  EXPECT_EQ(row.route, "ship");
  EXPECT_EQ(row.ordering_key, std::nullopt);
  EXPECT_EQ(row.status, DeliveryStatus::pending);
  EXPECT_EQ(row.attempts, 0);
  EXPECT_EQ(row.retry_delays, stored.retry_delays);
  EXPECT_EQ(row.timeout, stored.timeout);
  EXPECT_EQ(row.on_failed, OnFailed::skip);
  EXPECT_EQ(row.dispatch_id, std::nullopt);
  EXPECT_EQ(row.available_at, clock_.wall());
  EXPECT_EQ(row.generation, 1);
}

TEST_P(StoreConformance, A_relay_that_asks_for_due_deliveries_sees_no_job) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), job());
  store_delivery(*store_, relay, order_event("2"), all_of({job(), due_in(seconds(5))}));

  const auto none = relay.due({"ship", "out"});
  EXPECT_THAT(none.deliveries, IsEmpty());
  EXPECT_FALSE(none.more);
  EXPECT_EQ(none.next_in, std::nullopt);

  const auto publish = store_delivery(*store_, relay, order_event("1"));
  const auto due = relay.due({"ship", "out"});
  EXPECT_THAT(ids_of(due), ElementsAre(publish.id));
}

TEST_P(StoreConformance, A_scheduled_job_is_due_at_its_time) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), all_of({job(), due_in(hours(2))}));

  const auto rows = rows_of(*harness_, everything(), clock_.wall());
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].delivery.available_at, clock_.wall() + hours(2));
}

TEST_P(StoreConformance, A_job_holds_up_nobody) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), job());
  store_delivery(*store_, relay, order_event("1"), failed_job());

  add(*store_, {order_event("1")});
  EXPECT_THAT(relay.claim().open_heads, IsEmpty());
}

TEST_P(StoreConformance, R_170_an_event_makes_a_job_once_per_queue) {
  Claimant relay(*store_, clock_);
  relay.lease();
  add(*store_, {order_event("1")});
  const auto event = relay.claim().events.at(0);
  const auto first = delivery_of(event, job());
  const auto again = delivery_of(event, all_of({job(), on_route("ship-too")}));
  const auto elsewhere = delivery_of(
      event,
      all_of({job(), on_route("slow"), [](NewDelivery& row) { row.job->policy.queue = "slow"; }}));

  const auto settled =
      relay.settle(routing(relay.settle_request(), event, {first, again, elsewhere}));

  EXPECT_THAT(settled.stale_deliveries, IsEmpty());
  EXPECT_THAT(rows_of(*harness_, everything(), clock_.wall()), SizeIs(2));
}

TEST_P(StoreConformance, A_repeated_settle_stores_its_jobs_once) {
  Claimant relay(*store_, clock_);
  relay.lease();
  add(*store_, {order_event("1")});
  const auto event = relay.claim().events.at(0);
  const auto request = routing(relay.settle_request(), event, {delivery_of(event, job())});
  relay.settle(request);

  const auto repeated = relay.settle(request);

  EXPECT_THAT(repeated.stale_events, ElementsAre(event.event->seq));
  EXPECT_THAT(repeated.stale_deliveries, IsEmpty());
  EXPECT_THAT(rows_of(*harness_, everything(), clock_.wall()), SizeIs(1));
}

TEST_P(StoreConformance, An_event_that_was_routed_before_makes_no_job) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto event = store_routed(*store_, relay, order_event("1"));

  const auto settled =
      relay.settle(routing(relay.settle_request(), event, {delivery_of(event, job())}));

  EXPECT_THAT(settled.stale_events, ElementsAre(event.event->seq));
  EXPECT_THAT(rows_of(*harness_, everything(), clock_.wall()), IsEmpty());
}

TEST_P(StoreConformance, A_held_event_becomes_a_job_once_a_route_matches) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto held = store_held(*store_, relay, order_event("1"));
  const auto event = relay.held().events.at(0).claimed;
  auto request = routing(relay.settle_request(), event, {delivery_of(event, job())});
  request.released = {held.id};

  EXPECT_THAT(relay.settle(request).stale_events, IsEmpty());

  EXPECT_THAT(relay.held().events, IsEmpty());
  const auto rows = rows_of(*harness_, everything(), clock_.wall());
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].delivery.route, "ship");
}

TEST_P(StoreConformance, A_taken_unique_key_stores_no_second_job_and_its_event_is_routed) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto first = store_delivery(*store_, relay, order_event("1"), job("order/1"));
  add(*store_, {order_event("1")});
  const auto event = relay.claim().events.at(0);

  const auto settled = relay.settle(routing(
      relay.settle_request(), event, {delivery_of(event, job("order/1")), delivery_of(event)}));

  EXPECT_THAT(settled.stale_deliveries, IsEmpty()) << "nothing is said of it";
  EXPECT_THAT(settled.stale_events, IsEmpty());
  EXPECT_THAT(relay.claim_all().events, IsEmpty());
  EXPECT_THAT(relay.due().deliveries, SizeIs(1)) << "the other route has its delivery";
  DeliveryFilter filter = everything();
  filter.route = "ship";
  const auto rows = rows_of(*harness_, filter, clock_.wall());
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].delivery.id, first.id);
}

TEST_P(StoreConformance, JT_23_of_many_jobs_with_one_unique_key_in_one_settle_one_is_stored) {
  Claimant relay(*store_, clock_);
  relay.lease();
  add(*store_, order_events("1", 100));
  auto request = relay.settle_request();
  for (const auto& event : relay.claim().events)
    request = routing(std::move(request), event, {delivery_of(event, job("once"))});

  const auto settled = relay.settle(request);

  EXPECT_THAT(settled.stale_events, IsEmpty());
  EXPECT_THAT(settled.stale_deliveries, IsEmpty());
  EXPECT_THAT(rows_of(*harness_, everything(), clock_.wall()), SizeIs(1));
}

TEST_P(StoreConformance, A_unique_key_is_one_of_its_job_and_no_key_is_never_taken) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), job("order/1"));
  store_delivery(*store_, relay, order_event("2"), job_named("Pack", "order/1"));
  store_delivery(*store_, relay, order_event("3"), job());
  store_delivery(*store_, relay, order_event("4"), job());

  EXPECT_THAT(rows_of(*harness_, everything(), clock_.wall()), SizeIs(4));
}

TEST_P(StoreConformance, JT_22_a_unique_key_is_free_once_its_job_is_final) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), failed_job("order/1"));
  store_delivery(*store_, relay, order_event("1"), job("order/1"));

  EXPECT_THAT(rows_of(*harness_, everything(), clock_.wall()), SizeIs(2));
}

TEST_P(StoreConformance, A_job_can_be_stored_as_failed_at_once) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto stored = store_delivery(*store_, relay, order_event("1"), failed_job());

  DeadFilter filter;
  filter.route = "ship";
  const auto letters = value_of(harness_->open_operations()->dead_letters(filter, soon()));
  ASSERT_THAT(letters, SizeIs(1));
  EXPECT_EQ(letters[0].delivery.id, stored.id);
  EXPECT_EQ(letters[0].delivery.failure_code, "undecodable");
  EXPECT_EQ(letters[0].delivery.failure_detail, "no such header");
  EXPECT_EQ(letters[0].delivery.finished_at, clock_.wall());
}

TEST_P(StoreConformance, A_dead_job_gets_a_next_generation_that_is_a_job_again) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto dead_row = store_delivery(*store_, relay, order_event("1"), failed_job("order/1"));
  clock_.advance(seconds(7));

  DeadFilter filter;
  filter.ids = {dead_row.id};
  const auto made =
      value_of(harness_->open_operations()->dead_retry(filter, bob, clock_.wall(), soon()));

  ASSERT_THAT(made, SizeIs(1));
  DeliveryFilter of_next;
  of_next.id = made[0];
  const auto rows = rows_of(*harness_, of_next, clock_.wall());
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].delivery.status, DeliveryStatus::pending);
  EXPECT_EQ(rows[0].delivery.generation, 2);
  EXPECT_EQ(rows[0].delivery.available_at, clock_.wall());
  EXPECT_EQ(rows[0].delivery.retry_delays, dead_row.retry_delays);
  relay.lease();
  EXPECT_THAT(relay.due({"ship"}).deliveries, IsEmpty()) << "it is no publish delivery";
  // It has taken its unique key again.
  store_delivery(*store_, relay, order_event("1"), job("order/1"));
  EXPECT_THAT(rows_of(*harness_, everything(), clock_.wall()), SizeIs(2));
}

TEST_P(StoreConformance, A_dead_job_whose_unique_key_is_taken_stays_dead) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto dead_row = store_delivery(*store_, relay, order_event("1"), failed_job("order/1"));
  store_delivery(*store_, relay, order_event("1"), job("order/1"));
  const auto free_row = store_delivery(*store_, relay, order_event("2"), failed_job("order/2"));

  const auto operations = harness_->open_operations();
  const auto made = value_of(operations->dead_retry({}, bob, clock_.wall(), soon()));

  EXPECT_THAT(made, SizeIs(1)) << free_row.id.value().to_string();
  EXPECT_THAT(ids_of(value_of(operations->dead_letters({}, soon()))), ElementsAre(dead_row.id));
}

TEST_P(StoreConformance, Of_two_dead_jobs_with_one_unique_key_the_first_is_retried) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), failed_job("order/1"));
  const auto second = store_delivery(*store_, relay, order_event("1"), failed_job("order/1"));

  const auto operations = harness_->open_operations();
  EXPECT_THAT(value_of(operations->dead_retry({}, bob, clock_.wall(), soon())), SizeIs(1));

  EXPECT_THAT(ids_of(value_of(operations->dead_letters({}, soon()))), ElementsAre(second.id));
}

TEST_P(StoreConformance, A_purge_leaves_an_event_whose_job_is_open_or_dead) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), job());
  store_delivery(*store_, relay, order_event("2"), failed_job());
  store_routed(*store_, relay, order_event("3"));
  PurgeRequest request;
  request.kept = Kept::events;
  request.older_than = hours(1);
  request.rows = 100;
  request.now = clock_.wall() + hours(2);

  const auto slice = value_of(harness_->open_purger()->purge(request, std::nullopt, soon()));

  EXPECT_EQ(slice.rows, 1);
  EXPECT_THAT(rows_of(*harness_, everything(), clock_.wall()), SizeIs(2));
}

TEST_P(StoreConformance, Jobs_are_counted_and_listed_by_their_route_and_status) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto due = store_delivery(*store_, relay, order_event("1"), job());
  const auto broker = store_delivery(
      *store_, relay, order_event("2"),
      all_of({job(), [](NewDelivery& row) { row.job->transport = JobTransport::broker; }}));
  const auto delayed =
      store_delivery(*store_, relay, order_event("3"), all_of({job(), due_in(hours(1))}));
  const auto publish = store_delivery(*store_, relay, order_event("4"));
  store_delivery(*store_, relay, order_event("5"), failed_job());

  const auto status = value_of(harness_->open_operations()->status(clock_.wall(), soon()));
  ASSERT_THAT(status.routes, SizeIs(2));
  EXPECT_EQ(status.routes[1].route, "ship");
  EXPECT_EQ(status.routes[1].due, 2);
  EXPECT_EQ(status.routes[1].delayed, 1);
  EXPECT_EQ(status.routes[1].failed, 1);

  DeliveryFilter pending;
  pending.status = DeliveryStatus::pending;
  const auto operations = harness_->open_operations();
  EXPECT_THAT(ids_of(value_of(operations->deliveries(pending, clock_.wall(), soon()))),
              ElementsAre(publish.id, delayed.id, broker.id, due.id));
}

}  // namespace
}  // namespace postrider::testing
