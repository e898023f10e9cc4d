// What `Purger` promises: only what is finished goes, counted from its completion, slice by slice.

#include <atomic>
#include <thread>

#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr milliseconds week = hours(24 * 7);

PurgeRequest request_at(Timestamp now, Kept kept = Kept::events) {
  PurgeRequest request;
  request.kept = kept;
  request.older_than = week;
  request.rows = 1000;
  request.now = now;
  return request;
}

PurgeSlice purge(StoreHarness& harness, const PurgeRequest& request,
                 const std::optional<Operator>& who = std::nullopt) {
  return value_of(harness.open_purger()->purge(request, who, soon()));
}

std::int64_t purge(StoreHarness& harness, Timestamp now) {
  return purge(harness, request_at(now)).rows;
}

/// What each slice of a whole sweep deletes.
std::vector<std::int64_t> sweep(StoreHarness& harness, PurgeRequest request) {
  const auto purger = harness.open_purger();
  std::vector<std::int64_t> slices;
  for (bool more = true; more;) {
    const auto slice = value_of(purger->purge(request, std::nullopt, soon()));
    EXPECT_GE(slice.last, request.after);
    request.after = slice.last;
    slices.push_back(slice.rows);
    more = slice.more;
  }
  return slices;
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

TEST_P(StoreConformance, A_slice_looks_at_no_more_than_its_rows_and_says_where_it_ended) {
  Claimant relay(*store_, clock_);
  relay.lease();
  for (int i = 0; i < 5; ++i)
    store_routed(*store_, relay, order_event("1"));
  clock_.advance(week + seconds(1));
  auto request = request_at(clock_.wall());
  request.rows = 2;

  EXPECT_THAT(sweep(*harness_, request), ElementsAre(2, 2, 1));
  EXPECT_EQ(events_left(*harness_, clock_.wall()), 0);
}

TEST_P(StoreConformance, What_a_slice_has_to_leave_does_not_hide_what_stands_behind_it) {
  Claimant relay(*store_, clock_);
  relay.lease();
  for (int i = 0; i < 3; ++i)
    store_delivery(*store_, relay, lone_event(), dead());
  store_routed(*store_, relay, order_event("1"));
  clock_.advance(week + seconds(1));
  auto request = request_at(clock_.wall());
  request.rows = 3;

  const auto first = purge(*harness_, request);
  request.after = first.last;
  const auto second = purge(*harness_, request);

  EXPECT_EQ(first.rows, 0);
  EXPECT_TRUE(first.more);
  EXPECT_EQ(second.rows, 1);
  EXPECT_FALSE(second.more);
}

TEST_P(StoreConformance, A_dry_run_counts_and_deletes_nothing) {
  Claimant relay(*store_, clock_);
  relay.lease();
  for (int i = 0; i < 3; ++i)
    store_routed(*store_, relay, order_event("1"));
  clock_.advance(week + seconds(1));
  auto request = request_at(clock_.wall());
  request.dry_run = true;

  EXPECT_EQ(purge(*harness_, request).rows, 3);
  request.rows = 2;
  EXPECT_EQ(purge(*harness_, request).rows, 2);
  EXPECT_EQ(events_left(*harness_, clock_.wall()), 3);
}

TEST_P(StoreConformance, A_slice_of_no_rows_of_too_many_or_of_a_negative_age_is_refused) {
  struct Case {
    std::size_t rows;
    milliseconds age;
    ErrorCode code;
  };
  for (const auto kept : all_kept) {
    for (const auto& row :
         {Case{0, week, ErrorCode::invalid_argument}, Case{10'001, week, ErrorCode::limit_exceeded},
          Case{1, milliseconds(-1), ErrorCode::invalid_argument}}) {
      auto request = request_at(clock_.wall(), kept);
      request.rows = row.rows;
      request.older_than = row.age;
      const auto refused = harness_->open_purger()->purge(request, std::nullopt, soon());
      ASSERT_FALSE(refused.ok()) << to_string(kept);
      EXPECT_EQ(refused.error().code, row.code) << to_string(kept);
    }
  }
}

TEST_P(StoreConformance, A_person_who_purges_is_in_the_audit_and_a_relay_is_not) {
  if (!harness_->audit()) GTEST_SKIP() << "the audit cannot be read here";
  Claimant relay(*store_, clock_);
  relay.lease();
  store_routed(*store_, relay, order_event("1"));
  clock_.advance(week + seconds(1));
  store_routed(*store_, relay, order_event("2"));
  auto dry = request_at(clock_.wall());
  dry.dry_run = true;
  const Operator ann{"ann", "disk"};

  purge(*harness_, dry, ann);
  EXPECT_EQ(purge(*harness_, request_at(clock_.wall()), ann).rows, 1);
  EXPECT_EQ(purge(*harness_, request_at(clock_.wall()), ann).rows, 0);
  clock_.advance(week + seconds(1));
  EXPECT_EQ(purge(*harness_, clock_.wall()), 1);

  const auto changes = harness_->audit().value();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].action, "purge");
  EXPECT_EQ(changes[0].who.name, "ann");
  EXPECT_EQ(changes[0].who.reason, "disk");
}

// Keys and receipts are stamped by the database's own clock, so these count from that.
TEST_P(StoreConformance, Keys_go_by_their_own_age_and_can_then_be_used_again) {
  const auto now = system_clock().wall();
  for (const auto* key : {"a", "b", "c"})
    value_of(store_->add_once(order_event("1"), {"api", key}, soon()));
  auto request = request_at(now + hours(1), Kept::keys);
  EXPECT_EQ(purge(*harness_, request).rows, 0) << "too young";
  request.now = now + week + hours(1);
  request.rows = 2;
  request.dry_run = true;
  EXPECT_EQ(purge(*harness_, request).rows, 3) << "a dry run counts all";
  request.dry_run = false;

  const auto first = purge(*harness_, request);
  EXPECT_EQ(first.rows, 2);
  EXPECT_TRUE(first.more);
  const auto second = purge(*harness_, request);
  EXPECT_EQ(second.rows, 1);
  EXPECT_FALSE(second.more);

  auto other = order_event("2", R"({"other":true})");
  EXPECT_EQ(value_of(store_->add_once(other, {"api", "a"}, soon())), *other.id);
}

TEST_P(StoreConformance, Receipts_go_by_their_own_age) {
  if (!harness_->plant_receipt(hours(24))) GTEST_SKIP() << "there is no inbox";
  const auto now = system_clock().wall();
  for (int i = 0; i < 3; ++i)
    harness_->plant_receipt(week + hours(1));
  auto request = request_at(now, Kept::receipts);
  request.rows = 2;
  request.dry_run = true;
  EXPECT_EQ(purge(*harness_, request).rows, 3) << "a dry run counts all";
  request.dry_run = false;

  const auto first = purge(*harness_, request);
  EXPECT_EQ(first.rows, 2);
  EXPECT_TRUE(first.more);
  EXPECT_EQ(purge(*harness_, request).rows, 1);
  EXPECT_EQ(purge(*harness_, request).rows, 0) << "the young one stays";
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

TEST_P(StoreConformance, Two_purges_at_once_delete_each_event_once) {
  Claimant relay(*store_, clock_);
  relay.lease();
  for (int i = 0; i < 60; ++i)
    store_routed(*store_, relay, lone_event());
  clock_.advance(week + seconds(1));
  auto request = request_at(clock_.wall());
  request.rows = 5;
  std::atomic<std::int64_t> deleted = 0;
  const auto sweep_once = [&] {
    for (const auto rows : sweep(*harness_, request))
      deleted += rows;
  };

  std::thread other(sweep_once);
  sweep_once();
  other.join();
  sweep_once();  // what one passed over while the other had it locked

  EXPECT_EQ(deleted, 60);
  EXPECT_EQ(events_left(*harness_, clock_.wall()), 0);
}

TEST_P(StoreConformance, A_purge_beside_retries_and_settles_takes_nothing_that_is_open) {
  Claimant relay(*store_, clock_);
  relay.lease();
  for (int i = 0; i < 20; ++i)
    store_delivery(*store_, relay, lone_event(), dead());
  clock_.advance(week + seconds(1));
  relay.lease();
  const auto now = clock_.wall();
  std::atomic<bool> done = false;
  std::thread purging([&] {
    const auto purger = harness_->open_purger();
    while (!done)
      EXPECT_EQ(value_of(purger->purge(request_at(now), std::nullopt, soon())).rows, 0);
  });
  const auto operations = harness_->open_operations();
  DeadFilter one;
  one.limit = 1;
  for (int i = 0; i < 20; ++i) {
    value_of(operations->dead_retry(one, {"ann", "again"}, now, soon()));
    const auto due = relay.due();
    ASSERT_EQ(due.deliveries.size(), 1U);
    relay.settle(updating(relay.settle_request(),
                          {update_of(due.deliveries[0], DeliveryStatus::completed)}));
  }
  done = true;
  purging.join();

  EXPECT_EQ(events_left(*harness_, now), 20);
}

}  // namespace
}  // namespace postrider::testing
