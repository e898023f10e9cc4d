// What `Operations::purge` promises: only what is finished goes, counted from its completion.

#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr milliseconds week = hours(24 * 7);

std::int64_t purge(StoreHarness& harness, Timestamp now, std::size_t limit = 1000,
                   bool dry_run = false) {
  return value_of(harness.open_operations()->purge(week, limit, dry_run, now, soon()));
}

std::int64_t events_left(StoreHarness& harness, Timestamp now) {
  return value_of(harness.open_operations()->status(now, soon())).events.total;
}

TEST_P(StoreConformance, An_empty_database_has_nothing_to_purge) {
  EXPECT_EQ(purge(*harness_, clock_.wall()), 0);
}

TEST_P(StoreConformance, A_routed_event_goes_once_it_is_old_enough) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_routed(*store_, relay, order_event("1"));

  clock_.advance(week - seconds(1));
  EXPECT_EQ(purge(*harness_, clock_.wall()), 0);
  clock_.advance(seconds(2));
  EXPECT_EQ(purge(*harness_, clock_.wall()), 1);
  EXPECT_EQ(events_left(*harness_, clock_.wall()), 0);
}

TEST_P(StoreConformance, An_event_that_was_never_routed_stays) {
  add(*store_, {order_event("1")});
  clock_.advance(hours(24 * 3650));

  EXPECT_EQ(purge(*harness_, clock_.wall()), 0);
  EXPECT_EQ(events_left(*harness_, clock_.wall()), 1);
}

struct PurgeCase {
  const char* description;
  Change row;
  bool goes;
};

TEST_P(StoreConformance, An_event_stays_while_a_delivery_of_it_is_unfinished) {
  using S = DeliveryStatus;
  const std::vector<PurgeCase> cases = {
      {"pending", with_status(S::pending), false},
      {"delayed", due_in(hours(1)), false},
      {"dispatched", with_status(S::dispatched), false},
      {"failed under halt", dead(OnFailed::halt), false},
      {"failed under skip", dead(OnFailed::skip), false},
      {"failed under stop", dead(OnFailed::stop), false},
      {"completed", with_status(S::completed), true},
  };
  Claimant relay(*store_, clock_);
  relay.lease();
  for (const auto& row : cases) {
    store_delivery(*store_, relay, lone_event(), row.row);
    clock_.advance(week + seconds(1));
    EXPECT_EQ(purge(*harness_, clock_.wall()), row.goes ? 1 : 0) << row.description;
    relay.lease();
  }
  EXPECT_EQ(events_left(*harness_, clock_.wall()), 6);
}

TEST_P(StoreConformance, A_held_event_stays) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_held(*store_, relay, order_event("1"));
  clock_.advance(week + seconds(1));

  EXPECT_EQ(purge(*harness_, clock_.wall()), 0);
}

TEST_P(StoreConformance, One_unfinished_delivery_keeps_the_event_of_a_finished_one) {
  add(*store_, {order_event("1")});
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto batch = relay.claim();
  const auto& claimed = batch.events.at(0);
  const auto done = delivery_of(claimed, with_status(DeliveryStatus::completed));
  const auto open = delivery_of(claimed, on_route("audit"));
  relay.settle(routing(relay.settle_request(), claimed, {done, open}));
  clock_.advance(week + seconds(1));

  EXPECT_EQ(purge(*harness_, clock_.wall()), 0);
}

TEST_P(StoreConformance, Age_is_counted_from_the_last_completion) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto row = store_delivery(*store_, relay, order_event("1"));
  clock_.advance(week);
  relay.lease();
  relay.settle(updating(relay.settle_request(), {update_of(row, DeliveryStatus::completed)}));

  clock_.advance(seconds(1));
  EXPECT_EQ(purge(*harness_, clock_.wall()), 0);
  clock_.advance(week);
  EXPECT_EQ(purge(*harness_, clock_.wall()), 1);
}

TEST_P(StoreConformance, A_discarded_dead_letter_goes_a_retention_after_it_was_given_up) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), dead());
  clock_.advance(week);
  value_of(harness_->open_operations()->dead_discard({}, {"ann", "old"}, clock_.wall(), soon()));

  clock_.advance(seconds(1));
  EXPECT_EQ(purge(*harness_, clock_.wall()), 0);
  clock_.advance(week);
  EXPECT_EQ(purge(*harness_, clock_.wall()), 1);
}

TEST_P(StoreConformance, A_dead_letter_whose_retry_was_confirmed_does_not_keep_its_event) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), dead());
  value_of(harness_->open_operations()->dead_retry({}, {"ann", "fixed"}, clock_.wall(), soon()));
  relay.settle(updating(relay.settle_request(),
                        {update_of(relay.due().deliveries.at(0), DeliveryStatus::completed)}));
  clock_.advance(week + seconds(1));

  EXPECT_EQ(purge(*harness_, clock_.wall()), 1);
  EXPECT_EQ(events_left(*harness_, clock_.wall()), 0);
}

TEST_P(StoreConformance, A_dead_letter_whose_retry_is_open_keeps_its_event) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), dead());
  value_of(harness_->open_operations()->dead_retry({}, {"ann", "fixed"}, clock_.wall(), soon()));
  clock_.advance(week + seconds(1));

  EXPECT_EQ(purge(*harness_, clock_.wall()), 0);
}

TEST_P(StoreConformance, A_purge_takes_no_more_than_its_limit) {
  Claimant relay(*store_, clock_);
  relay.lease();
  for (int i = 0; i < 5; ++i)
    store_routed(*store_, relay, order_event("1"));
  clock_.advance(week + seconds(1));

  EXPECT_EQ(purge(*harness_, clock_.wall(), 2), 2);
  EXPECT_EQ(events_left(*harness_, clock_.wall()), 3);
  EXPECT_EQ(purge(*harness_, clock_.wall(), 1000), 3);
}

TEST_P(StoreConformance, A_dry_run_counts_and_deletes_nothing) {
  Claimant relay(*store_, clock_);
  relay.lease();
  for (int i = 0; i < 3; ++i)
    store_routed(*store_, relay, order_event("1"));
  clock_.advance(week + seconds(1));

  EXPECT_EQ(purge(*harness_, clock_.wall(), 2, true), 2);
  EXPECT_EQ(purge(*harness_, clock_.wall(), 1000, true), 3);
  EXPECT_EQ(events_left(*harness_, clock_.wall()), 3);
}

TEST_P(StoreConformance, Deliveries_go_with_their_event) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), with_status(DeliveryStatus::completed));
  clock_.advance(week + seconds(1));
  purge(*harness_, clock_.wall());

  const auto status = value_of(harness_->open_operations()->status(clock_.wall(), soon()));

  for (const auto& counts : status.routes)
    EXPECT_EQ(counts.completed, 0);
}

TEST_P(StoreConformance, A_seq_is_never_given_out_again) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto purged = store_routed(*store_, relay, order_event("1"));
  clock_.advance(week + seconds(1));
  ASSERT_EQ(purge(*harness_, clock_.wall()), 1);
  add(*store_, {order_event("1")});

  const auto batch = relay.claim();

  ASSERT_EQ(batch.events.size(), 1);
  EXPECT_GT(batch.events[0].event->seq, purged.event->seq);
}

}  // namespace
}  // namespace postrider::testing
