// What `Operations` promises to people: true counts, and changes that a running relay notices.

#include <map>

#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Operator ann{"ann", "the queue is back"};

Status status_at(StoreHarness& harness, Timestamp now) {
  return value_of(harness.open_operations()->status(now, soon()));
}

DeliveryCounts counts_of(const Status& status, const std::string& route) {
  for (const auto& counts : status.routes) {
    if (counts.route == route) return counts;
  }
  ADD_FAILURE() << "no counts for route " << route;
  return {};
}

DeadFilter on(std::string route) {
  DeadFilter filter;
  filter.route = std::move(route);
  return filter;
}

std::map<Partition, std::int64_t> generations(const LeaseGrant& grant) {
  std::map<Partition, std::int64_t> by_partition;
  for (const auto& granted : grant.leases) {
    by_partition[granted.lease.partition] = granted.generation;
  }
  return by_partition;
}

TEST_P(StoreConformance, The_status_of_an_empty_database_is_zeros) {
  const auto status = status_at(*harness_, clock_.wall());

  EXPECT_EQ(status.events.total, 0);
  EXPECT_EQ(status.events.unrouted, 0);
  EXPECT_EQ(status.events.oldest_unrouted_age, std::nullopt);
  EXPECT_THAT(status.routes, IsEmpty());
  EXPECT_THAT(status.paused_routes, IsEmpty());
  ASSERT_THAT(status.partitions, SizeIs(store_->traits().partitions));
  EXPECT_EQ(status.partitions[0].owner, "");
  EXPECT_EQ(status.partitions[0].remaining, std::nullopt);
}

TEST_P(StoreConformance, The_status_counts_events) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_routed(*store_, relay, order_event("1"));
  add(*store_, {order_event("1"), order_event("2")});
  const auto oldest = relay.claim().events.at(0).event->created_at;

  const auto status = status_at(*harness_, oldest + milliseconds(90'000));

  EXPECT_EQ(status.events.total, 3);
  EXPECT_EQ(status.events.unrouted, 2);
  EXPECT_EQ(status.events.oldest_unrouted_age, milliseconds(90'000));
}

TEST_P(StoreConformance, The_status_counts_deliveries_by_route_and_state) {
  using S = DeliveryStatus;
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"));
  store_delivery(*store_, relay, order_event("2"));
  store_delivery(*store_, relay, order_event("3"), due_in(hours(1)));
  store_delivery(*store_, relay, order_event("4"), with_status(S::dispatched));
  store_delivery(*store_, relay, order_event("5"), with_status(S::completed));
  store_delivery(*store_, relay, order_event("6"), dead());
  store_delivery(*store_, relay, order_event("7"), on_route("audit"));
  const auto cancelled = store_delivery(*store_, relay, order_event("8"));
  relay.settle(updating(relay.settle_request(), {update_of(cancelled, S::cancelled)}));

  const auto status = status_at(*harness_, clock_.wall());

  ASSERT_THAT(status.routes, SizeIs(2));
  EXPECT_EQ(status.routes[0].route, "audit");
  EXPECT_EQ(status.routes[0].due, 1);
  const auto counts = counts_of(status, "out");
  EXPECT_EQ(counts.due, 2);
  EXPECT_EQ(counts.delayed, 1);
  EXPECT_EQ(counts.dispatched, 1);
  EXPECT_EQ(counts.overdue, 0);
  EXPECT_EQ(counts.completed, 1);
  EXPECT_EQ(counts.failed, 1);
  EXPECT_EQ(counts.cancelled, 1);
  EXPECT_EQ(counts.discarded, 0);
  EXPECT_EQ(counts.held, 0);
}

TEST_P(StoreConformance, The_status_tells_ages_and_what_is_overdue) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), due_in(seconds(1)));
  clock_.advance(seconds(3));
  store_delivery(*store_, relay, order_event("2"), with_status(DeliveryStatus::dispatched));
  clock_.advance(seconds(11));

  const auto counts = counts_of(status_at(*harness_, clock_.wall()), "out");

  EXPECT_EQ(counts.oldest_due_age, seconds(13));
  EXPECT_EQ(counts.oldest_dispatched_age, seconds(11));
  EXPECT_EQ(counts.overdue, 1);
}

TEST_P(StoreConformance, The_status_leaves_out_ages_of_what_is_not_there) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), due_in(hours(1)));

  const auto status = status_at(*harness_, clock_.wall());

  EXPECT_EQ(status.events.oldest_unrouted_age, std::nullopt);
  EXPECT_EQ(counts_of(status, "out").oldest_due_age, std::nullopt);
  EXPECT_EQ(counts_of(status, "out").oldest_dispatched_age, std::nullopt);
  EXPECT_EQ(counts_of(status, "out").retries, 0);
}

TEST_P(StoreConformance, The_status_counts_retries) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), [](NewDelivery& row) { row.attempts = 2; });

  EXPECT_GT(counts_of(status_at(*harness_, clock_.wall()), "out").retries, 0);
}

TEST_P(StoreConformance, The_status_names_the_owners_of_partitions) {
  Claimant relay(*store_, clock_, "relay-7");
  relay.lease();
  clock_.advance(seconds(10));

  const auto status = status_at(*harness_, clock_.wall());

  for (std::size_t i = 0; i < status.partitions.size(); ++i) {
    EXPECT_EQ(status.partitions[i].partition, Partition(static_cast<std::int32_t>(i)));
    EXPECT_EQ(status.partitions[i].owner, "relay-7");
    EXPECT_EQ(status.partitions[i].remaining, seconds(20));
  }
}

TEST_P(StoreConformance, Dead_letters_are_listed_whole_and_by_seq) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto first = store_delivery(*store_, relay, order_event("2"), dead());
  const auto second = store_delivery(*store_, relay, lone_event(), dead(OnFailed::skip));
  store_delivery(*store_, relay, order_event("3"));

  const auto letters = value_of(harness_->open_operations()->dead_letters({}, soon()));

  ASSERT_THAT(ids_of(letters), ElementsAre(first.id, second.id));
  EXPECT_EQ(letters[0].event_type, "order.placed");
  EXPECT_EQ(letters[0].aggregate_key, "order/2");
  EXPECT_EQ(letters[0].delivery.route, "out");
  EXPECT_EQ(letters[0].delivery.event_seq, first.event_seq);
  EXPECT_EQ(letters[0].delivery.event_id, first.event_id);
  EXPECT_EQ(letters[0].delivery.failure_code, "unroutable");
  EXPECT_EQ(letters[0].delivery.on_failed, OnFailed::halt);
  EXPECT_EQ(letters[0].delivery.generation, 1);
  EXPECT_EQ(letters[1].aggregate_key, "");
}

struct FilterCase {
  const char* description;
  DeadFilter filter;
  std::vector<std::size_t> found;
};

TEST_P(StoreConformance, A_filter_finds_the_dead_letters_for_which_all_of_it_holds) {
  Claimant relay(*store_, clock_);
  relay.lease();
  auto paid = order_event("1");
  paid.type = "order.paid";
  const std::vector<DeliveryId> rows = {
      store_delivery(*store_, relay, order_event("2"), dead()).id,
      store_delivery(*store_, relay, paid, all_of({dead(), on_route("audit")})).id,
      store_delivery(*store_, relay, order_event("3"),
                     all_of({dead(),
                             [](NewDelivery& row) {
                               row.failure_code = "timed_out";
                               row.ambiguous = true;
                             }}))
          .id};
  std::vector<FilterCase> cases(9);
  cases[0] = {"nothing set", {}, {0, 1, 2}};
  cases[1] = {"ids", {}, {0, 2}};
  cases[1].filter.ids = {rows[2], rows[0]};
  cases[2] = {"route", on("audit"), {1}};
  cases[3] = {"event type", {}, {1}};
  cases[3].filter.event_type = "order.paid";
  cases[4] = {"failure code", {}, {2}};
  cases[4].filter.failure_code = "timed_out";
  cases[5] = {"ambiguous", {}, {2}};
  cases[5].filter.ambiguous = true;
  cases[6] = {"not ambiguous", {}, {0, 1}};
  cases[6].filter.ambiguous = false;
  cases[7] = {"route and type that exclude each other", on("out"), {}};
  cases[7].filter.event_type = "order.paid";
  cases[8] = {"limit", {}, {0, 1}};
  cases[8].filter.limit = 2;

  for (const auto& row : cases) {
    std::vector<DeliveryId> expected;
    for (const auto index : row.found)
      expected.push_back(rows[index]);
    EXPECT_EQ(ids_of(value_of(harness_->open_operations()->dead_letters(row.filter, soon()))),
              expected)
        << row.description;
  }
}

TEST_P(StoreConformance, A_limit_out_of_its_range_is_refused) {
  const auto operations = harness_->open_operations();
  for (const std::size_t limit : {std::size_t{0}, std::size_t{100'001}}) {
    DeadFilter filter;
    filter.limit = limit;
    const auto letters = operations->dead_letters(filter, soon());
    ASSERT_FALSE(letters.ok()) << limit;
    EXPECT_EQ(letters.error().disposition, Disposition::reject);
    EXPECT_FALSE(operations->dead_retry(filter, ann, clock_.wall(), soon()).ok()) << limit;
    EXPECT_FALSE(operations->dead_discard(filter, ann, clock_.wall(), soon()).ok()) << limit;
  }
}

TEST_P(StoreConformance, A_retried_dead_letter_is_a_new_generation_that_is_due_at_once) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto letter = store_delivery(*store_, relay, order_event("1"), dead(OnFailed::skip));
  const auto operations = harness_->open_operations();
  clock_.advance(seconds(60));

  const auto made = value_of(operations->dead_retry({}, ann, clock_.wall(), soon()));

  ASSERT_THAT(made, SizeIs(1));
  EXPECT_NE(made[0], letter.id);
  const auto batch = relay.due();
  ASSERT_THAT(ids_of(batch), ElementsAre(made[0]));
  const auto& row = batch.deliveries[0].delivery;
  EXPECT_EQ(row.generation, 2);
  EXPECT_EQ(row.status, DeliveryStatus::pending);
  EXPECT_EQ(row.attempts, 0);
  EXPECT_EQ(row.dispatch_id, std::nullopt);
  EXPECT_EQ(row.available_at, clock_.wall());
  EXPECT_EQ(row.finished_at, std::nullopt);
  EXPECT_EQ(row.failure_code, "");
  EXPECT_EQ(row.failure_detail, "");
  EXPECT_FALSE(row.ambiguous);
  EXPECT_EQ(row.event_seq, letter.event_seq);
  EXPECT_EQ(row.event_id, letter.event_id);
  EXPECT_EQ(row.route, letter.route);
  EXPECT_EQ(row.ordering_key, letter.ordering_key);
  EXPECT_EQ(row.retry_delays, letter.retry_delays);
  EXPECT_EQ(row.timeout, letter.timeout);
  EXPECT_EQ(row.on_failed, OnFailed::skip);
}

TEST_P(StoreConformance, A_retried_dead_letter_is_history_and_no_dead_letter) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), dead());
  const auto operations = harness_->open_operations();
  value_of(operations->dead_retry({}, ann, clock_.wall(), soon()));

  EXPECT_THAT(value_of(operations->dead_letters({}, soon())), IsEmpty());
  EXPECT_THAT(value_of(operations->dead_retry({}, ann, clock_.wall(), soon())), IsEmpty());
  const auto counts = counts_of(status_at(*harness_, clock_.wall()), "out");
  EXPECT_EQ(counts.failed, 0);
  EXPECT_EQ(counts.due, 1);
}

TEST_P(StoreConformance, A_generation_that_dies_too_can_be_retried_again) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), dead());
  const auto operations = harness_->open_operations();
  value_of(operations->dead_retry({}, ann, clock_.wall(), soon()));
  relay.settle(updating(relay.settle_request(),
                        {update_of(relay.due().deliveries.at(0), DeliveryStatus::failed)}));

  EXPECT_THAT(value_of(operations->dead_letters({}, soon())), SizeIs(1));
  value_of(operations->dead_retry({}, ann, clock_.wall(), soon()));
  EXPECT_EQ(relay.due().deliveries.at(0).delivery.generation, 3);
}

TEST_P(StoreConformance, A_retry_goes_before_what_waited_behind_its_dead_letter) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), dead());
  const auto next = store_delivery(*store_, relay, order_event("1"));
  EXPECT_THAT(relay.due().deliveries, IsEmpty());

  const auto made =
      value_of(harness_->open_operations()->dead_retry({}, ann, clock_.wall(), soon()));

  EXPECT_THAT(ids_of(relay.due()), ElementsAre(made.at(0), next.id));
}

TEST_P(StoreConformance, A_retry_of_a_skipped_dead_letter_blocks_its_aggregate_again) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), dead(OnFailed::skip));
  value_of(harness_->open_operations()->dead_retry({}, ann, clock_.wall(), soon()));
  auto dispatch = update_of(relay.due().deliveries.at(0), DeliveryStatus::dispatched);
  dispatch.dispatch_id = DispatchId(fresh_uuid());
  relay.settle(updating(relay.settle_request(), {dispatch}));
  store_delivery(*store_, relay, order_event("1"));

  EXPECT_THAT(relay.due().deliveries, IsEmpty());
}

TEST_P(StoreConformance, A_discarded_dead_letter_lets_its_aggregate_go_on) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto letter = store_delivery(*store_, relay, order_event("1"), dead());
  const auto next = store_delivery(*store_, relay, order_event("1"));
  const auto operations = harness_->open_operations();

  const auto ended = value_of(operations->dead_discard({}, ann, clock_.wall(), soon()));

  EXPECT_THAT(ended, ElementsAre(letter.id));
  EXPECT_THAT(ids_of(relay.due()), ElementsAre(next.id));
  EXPECT_THAT(value_of(operations->dead_letters({}, soon())), IsEmpty());
  EXPECT_THAT(value_of(operations->dead_discard({}, ann, clock_.wall(), soon())), IsEmpty());
  EXPECT_EQ(counts_of(status_at(*harness_, clock_.wall()), "out").discarded, 1);
}

TEST_P(StoreConformance, Changes_keep_to_their_filter) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto out = store_delivery(*store_, relay, order_event("1"), dead());
  const auto audit =
      store_delivery(*store_, relay, order_event("2"), all_of({dead(), on_route("audit")}));
  const auto operations = harness_->open_operations();

  EXPECT_THAT(value_of(operations->dead_discard(on("audit"), ann, clock_.wall(), soon())),
              ElementsAre(audit.id));
  EXPECT_THAT(ids_of(value_of(operations->dead_letters({}, soon()))), ElementsAre(out.id));
  EXPECT_THAT(value_of(operations->dead_retry(on("audit"), ann, clock_.wall(), soon())), IsEmpty());
  EXPECT_THAT(relay.due({"out", "audit"}).deliveries, IsEmpty());
}

TEST_P(StoreConformance, Changes_keep_to_their_limit_from_the_front) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto first = store_delivery(*store_, relay, order_event("2"), dead());
  store_delivery(*store_, relay, order_event("1"), dead());
  DeadFilter one;
  one.limit = 1;

  EXPECT_THAT(value_of(harness_->open_operations()->dead_discard(one, ann, clock_.wall(), soon())),
              ElementsAre(first.id));
}

TEST_P(StoreConformance, A_relay_sees_in_its_next_grant_that_a_person_touched_deliveries) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto retried = store_delivery(*store_, relay, order_event("1"), dead());
  const auto discarded =
      store_delivery(*store_, relay, order_event("1"), all_of({dead(), on_route("audit")}));
  const auto operations = harness_->open_operations();
  const auto before = generations(relay.lease());

  value_of(operations->dead_retry(on("out"), ann, clock_.wall(), soon()));
  const auto after_retry = generations(relay.lease());
  value_of(operations->dead_discard(on("audit"), ann, clock_.wall(), soon()));
  const auto after_discard = generations(relay.lease());

  EXPECT_NE(after_retry.at(retried.partition), before.at(retried.partition));
  EXPECT_NE(after_discard.at(discarded.partition), after_retry.at(discarded.partition));
  for (const auto& [partition, generation] : before) {
    if (partition == retried.partition) continue;
    EXPECT_EQ(after_discard.at(partition), generation);
  }
}

TEST_P(StoreConformance, A_change_of_nothing_is_not_worth_a_reload) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), dead());
  const auto before = generations(relay.lease());

  value_of(harness_->open_operations()->dead_retry(on("no-such"), ann, clock_.wall(), soon()));

  EXPECT_EQ(generations(relay.lease()), before);
}

TEST_P(StoreConformance, An_update_meant_for_a_dead_letter_that_was_discarded_is_stale) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto letter = store_delivery(*store_, relay, order_event("1"), dead());
  value_of(harness_->open_operations()->dead_discard({}, ann, clock_.wall(), soon()));

  const auto settled = relay.settle(
      updating(relay.settle_request(), {update_of(letter, DeliveryStatus::completed)}));

  EXPECT_THAT(settled.stale_deliveries, ElementsAre(letter.id));
}

TEST_P(StoreConformance, Pausing_and_resuming_a_route_is_idempotent) {
  const auto operations = harness_->open_operations();
  const auto now = clock_.wall();

  EXPECT_TRUE(value_of(operations->route_pause("out", ann, now, soon())));
  EXPECT_FALSE(value_of(operations->route_pause("out", ann, now, soon())));
  EXPECT_THAT(status_at(*harness_, now).paused_routes, ElementsAre("out"));
  EXPECT_TRUE(value_of(operations->route_resume("out", ann, now, soon())));
  EXPECT_FALSE(value_of(operations->route_resume("out", ann, now, soon())));
  EXPECT_THAT(status_at(*harness_, now).paused_routes, IsEmpty());
}

TEST_P(StoreConformance, A_route_that_nobody_paused_is_not_resumed) {
  EXPECT_FALSE(
      value_of(harness_->open_operations()->route_resume("no-such", ann, clock_.wall(), soon())));
}

TEST_P(StoreConformance, A_route_that_a_dead_letter_stopped_is_resumed_by_a_person) {
  Claimant relay(*store_, clock_);
  relay.lease();
  auto request = relay.settle_request();
  request.stopped_routes = {"out"};
  relay.settle(request);

  EXPECT_THAT(status_at(*harness_, clock_.wall()).paused_routes, ElementsAre("out"));
  EXPECT_TRUE(
      value_of(harness_->open_operations()->route_resume("out", ann, clock_.wall(), soon())));
  EXPECT_THAT(relay.lease().paused_routes, IsEmpty());
}

TEST_P(StoreConformance, Every_change_by_a_person_is_audited_with_name_and_reason) {
  if (!harness_->audit()) GTEST_SKIP() << "the audit cannot be read here";
  const auto operations = harness_->open_operations();
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), dead());
  const auto now = clock_.wall();
  value_of(operations->route_pause("out", {"ann", "1"}, now, soon()));
  value_of(operations->route_resume("out", {"bob", "2"}, now, soon()));
  value_of(operations->dead_retry({}, {"cyd", "3"}, now, soon()));
  relay.settle(updating(relay.settle_request(),
                        {update_of(relay.due().deliveries.at(0), DeliveryStatus::failed)}));
  value_of(operations->dead_discard({}, {"dan", "4"}, now, soon()));

  const auto changes = harness_->audit().value();
  std::vector<std::string> audited;
  for (const auto& change : changes) {
    audited.push_back(change.action + " " + change.who.name + " " + change.who.reason);
  }

  EXPECT_THAT(audited, ElementsAre("route_pause ann 1", "route_resume bob 2", "dead_retry cyd 3",
                                   "dead_discard dan 4"));
}

TEST_P(StoreConformance, A_command_of_many_leaves_one_more_line_for_each_transaction) {
  if (!harness_->audit()) GTEST_SKIP() << "the audit cannot be read here";
  const auto operations = harness_->open_operations();
  Claimant relay(*store_, clock_);
  relay.lease();
  for (int i = 0; i < 3; ++i)
    store_delivery(*store_, relay, lone_event(), dead());
  DeadFilter two;
  two.limit = 2;
  const Operator bulk{"ann", "mended", "route=out"};

  value_of(operations->dead_retry(two, bulk, clock_.wall(), soon()));
  value_of(operations->dead_discard({}, bulk, clock_.wall(), soon()));
  EXPECT_THAT(value_of(operations->dead_discard({}, bulk, clock_.wall(), soon())), IsEmpty());

  const auto changes = harness_->audit().value();
  std::vector<std::string> audited;
  for (const auto& change : changes)
    audited.push_back(change.action);
  EXPECT_THAT(audited,
              ElementsAre("dead_retry", "dead_retry", "dead_retry", "dead_discard", "dead_discard"))
      << "one line for each letter, and one for both transactions that changed something";
}

TEST_P(StoreConformance, Dead_letters_can_be_gone_through_page_by_page) {
  Claimant relay(*store_, clock_);
  relay.lease();
  std::vector<DeliveryId> all;
  for (int i = 0; i < 3; ++i) {
    add(*store_, {lone_event()});
    const auto claimed = relay.claim().events.at(0);
    const auto audit = delivery_of(claimed, all_of({dead(), on_route("audit")}));
    const auto out = delivery_of(claimed, dead());
    relay.settle(routing(relay.settle_request(), claimed, {out, audit}));
    all.push_back(audit.id);
    all.push_back(out.id);
  }
  const auto operations = harness_->open_operations();

  std::vector<DeliveryId> found;
  DeadFilter page;
  page.limit = 4;  // in the middle of an event's letters
  for (int pages = 0; pages < 3; ++pages) {
    const auto letters = value_of(operations->dead_letters(page, soon()));
    for (const auto& id : ids_of(letters))
      found.push_back(id);
    if (letters.empty()) break;
    const auto& last = letters.back().delivery;
    page.after = DeadPlace{last.event_seq, last.route};
    page.limit = page.limit == 4 ? 1 : 4;
  }

  EXPECT_EQ(found, all);
}

}  // namespace
}  // namespace postrider::testing
