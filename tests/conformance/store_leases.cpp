// What `Store::lease` and `Store::release` promise: one owner per partition, told apart by tokens.

#include <algorithm>
#include <utility>

#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::size_t partitions_of(const Store& store) {
  return static_cast<std::size_t>(store.traits().partitions);
}

std::vector<Partition> partitions_in(const LeaseGrant& grant) {
  std::vector<Partition> partitions;
  for (const auto& granted : grant.leases)
    partitions.push_back(granted.lease.partition);
  return partitions;
}

TEST_P(StoreConformance, A_fresh_table_is_leased_as_a_whole_by_partition) {
  Claimant relay(*store_, clock_);

  const auto grant = relay.lease();

  ASSERT_THAT(grant.leases, SizeIs(partitions_of(*store_)));
  for (std::size_t i = 0; i < grant.leases.size(); ++i) {
    EXPECT_EQ(grant.leases[i].lease.partition, Partition(static_cast<std::int32_t>(i)));
    EXPECT_GT(grant.leases[i].lease.token, FencingToken(0));
    EXPECT_TRUE(grant.leases[i].gained);
    EXPECT_EQ(grant.leases[i].mark, ReadMark());
  }
  EXPECT_THAT(grant.foreign, IsEmpty());
  EXPECT_THAT(grant.paused_routes, IsEmpty());
}

TEST_P(StoreConformance, A_fresh_lease_blocks_others_and_tells_them_for_how_long) {
  Claimant first(*store_, clock_, "relay-1");
  first.lease();
  clock_.advance(seconds(10));
  const auto other_store = harness_->open_store();
  Claimant second(*other_store, clock_, "relay-2");

  const auto grant = second.lease();

  EXPECT_THAT(grant.leases, IsEmpty());
  ASSERT_THAT(grant.foreign, SizeIs(partitions_of(*store_)));
  for (std::size_t i = 0; i < grant.foreign.size(); ++i) {
    EXPECT_EQ(grant.foreign[i].partition, Partition(static_cast<std::int32_t>(i)));
    EXPECT_EQ(grant.foreign[i].owner, "relay-1");
    EXPECT_EQ(grant.foreign[i].remaining, seconds(20));
  }
}

TEST_P(StoreConformance, A_renewal_keeps_the_token) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto before = relay.leases();

  const auto grant = relay.lease();

  EXPECT_EQ(relay.leases(), before);
  for (const auto& granted : grant.leases)
    EXPECT_FALSE(granted.gained);
}

TEST_P(StoreConformance, A_lease_that_ran_out_and_that_nobody_took_goes_on_under_its_token) {
  Claimant relay(*store_, clock_);
  const auto before = relay.lease();
  clock_.advance(std::chrono::hours(1));

  const auto after = relay.lease();

  ASSERT_THAT(after.leases, SizeIs(before.leases.size()));
  for (std::size_t i = 0; i < after.leases.size(); ++i) {
    EXPECT_EQ(after.leases[i].lease, before.leases[i].lease);
    EXPECT_FALSE(after.leases[i].gained);
  }
}

TEST_P(StoreConformance, A_renewal_counts_from_its_own_time) {
  Claimant first(*store_, clock_, "relay-1");
  first.lease();
  clock_.advance(seconds(20));
  first.lease();
  clock_.advance(seconds(20));

  const auto grant = Claimant(*store_, clock_, "relay-2").lease();

  EXPECT_THAT(grant.leases, IsEmpty());
  EXPECT_EQ(grant.foreign.at(0).remaining, seconds(10));
}

TEST_P(StoreConformance, A_lease_that_ran_out_is_taken_over_with_a_higher_token) {
  Claimant first(*store_, clock_, "relay-1");
  first.lease();
  clock_.advance(Claimant::lease_time + milliseconds(1));
  Claimant second(*store_, clock_, "relay-2");

  const auto grant = second.lease();

  ASSERT_THAT(grant.leases, SizeIs(partitions_of(*store_)));
  for (std::size_t i = 0; i < grant.leases.size(); ++i) {
    EXPECT_TRUE(grant.leases[i].gained);
    EXPECT_GT(grant.leases[i].lease.token, first.leases().at(i).token);
  }
}

TEST_P(StoreConformance, F41_a_lease_that_a_clock_set_back_has_prolonged_is_taken_over) {
  for (const auto& [back, free] :
       {std::pair(std::chrono::minutes(9), false), std::pair(std::chrono::minutes(11), true)}) {
    Claimant first(*store_, clock_, "relay-1");
    ASSERT_THAT(first.lease().leases, SizeIs(partitions_of(*store_)));
    clock_.advance(-back);
    Claimant second(*store_, clock_, "relay-2");
    const auto grant = second.lease();
    EXPECT_THAT(grant.leases, SizeIs(free ? partitions_of(*store_) : 0));
    EXPECT_EQ(grant.foreign.empty(), free);
    if (!free) continue;
    EXPECT_GT(grant.leases.front().lease.token, first.leases().front().token);
    EXPECT_THAT(first.lease().leases, IsEmpty()) << "its token fences the frozen owner off";
  }
}

TEST_P(StoreConformance, An_overtaken_owner_holds_nothing_any_more) {
  Claimant first(*store_, clock_, "relay-1");
  first.lease();
  clock_.advance(Claimant::lease_time + milliseconds(1));
  Claimant(*store_, clock_, "relay-2").lease();

  const auto grant = first.lease();

  EXPECT_THAT(grant.leases, IsEmpty());
  EXPECT_EQ(grant.foreign.at(0).owner, "relay-2");
}

TEST_P(StoreConformance, A_released_lease_is_free_at_once_under_a_higher_token) {
  Claimant first(*store_, clock_, "relay-1");
  first.lease();
  first.release();
  Claimant second(*store_, clock_, "relay-2");

  const auto grant = second.lease();

  ASSERT_THAT(grant.leases, SizeIs(partitions_of(*store_)));
  EXPECT_GT(grant.leases[0].lease.token, first.leases().at(0).token);
  EXPECT_THAT(grant.foreign, IsEmpty());
}

TEST_P(StoreConformance, Tokens_increase_for_the_same_owner_too) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto before = relay.leases().at(0).token;
  relay.release();

  const auto grant = relay.lease();

  EXPECT_GT(grant.leases.at(0).lease.token, before);
  EXPECT_TRUE(grant.leases.at(0).gained);
}

TEST_P(StoreConformance, Releasing_what_is_not_ours_any_more_takes_it_from_nobody) {
  Claimant first(*store_, clock_, "relay-1");
  first.lease();
  clock_.advance(Claimant::lease_time + milliseconds(1));
  Claimant second(*store_, clock_, "relay-2");
  second.lease();

  first.release();

  const auto settled = second.settle(second.settle_request());
  EXPECT_THAT(settled.lost, IsEmpty());
  EXPECT_THAT(first.lease().leases, IsEmpty());
}

TEST_P(StoreConformance, Releasing_twice_is_harmless) {
  Claimant relay(*store_, clock_);
  relay.lease();
  relay.release();
  relay.release();

  EXPECT_THAT(Claimant(*store_, clock_, "relay-2").lease().leases, SizeIs(partitions_of(*store_)));
}

TEST_P(StoreConformance, Releasing_nothing_is_harmless) {
  expect_ok(store_->release({}, soon()));
}

TEST_P(StoreConformance, An_owner_that_wants_nothing_gets_nothing) {
  const auto grant = Claimant(*store_, clock_).lease(0);

  EXPECT_THAT(grant.leases, IsEmpty());
  EXPECT_THAT(grant.foreign, IsEmpty());
}

TEST_P(StoreConformance, An_owner_takes_no_more_partitions_than_it_wants) {
  const auto all = partitions_of(*store_);
  if (all < 4) GTEST_SKIP() << "this store has too few partitions to share";
  Claimant first(*store_, clock_, "relay-1");
  Claimant second(*store_, clock_, "relay-2");

  EXPECT_THAT(first.lease(3).leases, SizeIs(3));
  EXPECT_THAT(first.lease(3).leases, SizeIs(3));
  const auto rest = second.lease(all);

  EXPECT_THAT(rest.leases, SizeIs(all - 3));
  EXPECT_THAT(rest.foreign, SizeIs(3));
}

TEST_P(StoreConformance, A_partition_beyond_what_its_owner_wants_is_kept) {
  if (partitions_of(*store_) < 4) GTEST_SKIP() << "this store has too few partitions to share";
  Claimant relay(*store_, clock_);
  relay.lease(3);
  const auto before = relay.leases();

  const auto grant = relay.lease(1);

  EXPECT_THAT(grant.leases, SizeIs(3));
  EXPECT_EQ(relay.leases(), before);
}

TEST_P(StoreConformance, An_owner_that_wants_more_takes_only_what_is_missing) {
  if (partitions_of(*store_) < 4) GTEST_SKIP() << "this store has too few partitions to share";
  Claimant relay(*store_, clock_);
  relay.lease(2);
  const auto before = relay.leases();

  const auto grant = relay.lease(4);

  ASSERT_THAT(grant.leases, SizeIs(4));
  for (const auto& granted : grant.leases) {
    const bool had = std::find(before.begin(), before.end(), granted.lease) != before.end();
    EXPECT_EQ(granted.gained, !had);
  }
}

TEST_P(StoreConformance, One_released_partition_leaves_the_others_alone) {
  if (partitions_of(*store_) < 4) GTEST_SKIP() << "this store has too few partitions to share";
  Claimant first(*store_, clock_, "relay-1");
  first.lease();
  expect_ok(store_->release(std::vector{first.leases().at(2)}, soon()));

  const auto grant = Claimant(*store_, clock_, "relay-2").lease();

  EXPECT_THAT(partitions_in(grant), ElementsAre(Partition(2)));
  EXPECT_THAT(grant.foreign, SizeIs(partitions_of(*store_) - 1));
}

TEST_P(StoreConformance, A_lease_that_ran_out_is_not_told_as_foreign) {
  Claimant(*store_, clock_, "relay-1").lease();
  clock_.advance(Claimant::lease_time + milliseconds(1));

  EXPECT_THAT(Claimant(*store_, clock_, "relay-2").lease(0).foreign, IsEmpty());
}

Suspicion suspicion_in(const LeaseGrant& grant) {
  return grant.leases.empty() ? Suspicion{-1} : grant.leases.front().suspicion;
}

/// As an owner sees it that took over from `owners` that died one after the other.
LeaseGrant taken_over_from(int owners, Store& store, ManualClock& clock) {
  for (int i = 0; i < owners; ++i) {
    Claimant(store, clock, "dead-" + std::to_string(i)).lease();
    clock.advance(Claimant::lease_time + milliseconds(1));
  }
  return Claimant(store, clock, "relay").lease();
}

TEST_P(StoreConformance, F2_each_takeover_from_an_owner_that_released_nothing_counts_a_crash) {
  EXPECT_EQ(suspicion_in(taken_over_from(0, *store_, clock_)), Suspicion{0});
  clock_.advance(Claimant::lease_time + milliseconds(1));
  EXPECT_EQ(suspicion_in(Claimant(*store_, clock_, "relay-2").lease()), Suspicion{1});
  clock_.advance(Claimant::lease_time + milliseconds(1));

  const auto grant = Claimant(*store_, clock_, "relay-3").lease();

  ASSERT_THAT(grant.leases, SizeIs(partitions_of(*store_)));
  for (const auto& granted : grant.leases)
    EXPECT_EQ(granted.suspicion, Suspicion{2});
}

TEST_P(StoreConformance, A_renewal_counts_no_crash_and_shows_those_that_were_counted) {
  taken_over_from(1, *store_, clock_);

  EXPECT_EQ(suspicion_in(Claimant(*store_, clock_, "relay").lease()), Suspicion{1});
  clock_.advance(std::chrono::hours(1));
  EXPECT_EQ(suspicion_in(Claimant(*store_, clock_, "relay").lease()), Suspicion{1});
}

TEST_P(StoreConformance, A_release_clears_the_suspicion) {
  taken_over_from(2, *store_, clock_);
  Claimant relay(*store_, clock_, "relay");
  relay.lease();
  relay.release();

  EXPECT_EQ(suspicion_in(Claimant(*store_, clock_, "relay-2").lease()), Suspicion{0});
}

TEST_P(StoreConformance,
       A_settled_suspicion_stands_in_place_of_the_old_one_and_outlives_its_owner) {
  taken_over_from(1, *store_, clock_);
  Claimant relay(*store_, clock_, "relay");
  relay.lease();
  auto request = relay.settle_request();
  request.suspicions = {{Partition(0), {2, Seq(17)}}};
  EXPECT_THAT(relay.settle(request).lost, IsEmpty());
  EXPECT_EQ(suspicion_in(relay.lease()), (Suspicion{2, Seq(17)}));
  clock_.advance(Claimant::lease_time + milliseconds(1));

  Claimant next(*store_, clock_, "relay-2");
  EXPECT_EQ(suspicion_in(next.lease()), (Suspicion{3, Seq(17)}));
  request = next.settle_request();
  request.suspicions = {{Partition(0), {}}};
  next.settle(request);
  EXPECT_EQ(suspicion_in(next.lease()), Suspicion{0});
}

TEST_P(StoreConformance, A_suspicion_is_stored_on_the_partitions_that_it_names) {
  if (partitions_of(*store_) < 4) GTEST_SKIP() << "this store has too few partitions to share";
  Claimant relay(*store_, clock_);
  relay.lease();
  auto request = relay.settle_request();
  request.suspicions = {{Partition(1), {3, Seq(5)}}, {Partition(3), {4, std::nullopt}}};
  relay.settle(request);

  const auto grant = relay.lease();

  EXPECT_EQ(grant.leases.at(0).suspicion, Suspicion{0});
  EXPECT_EQ(grant.leases.at(1).suspicion, (Suspicion{3, Seq(5)}));
  EXPECT_EQ(grant.leases.at(2).suspicion, Suspicion{0});
  EXPECT_EQ(grant.leases.at(3).suspicion, Suspicion{4});
}

TEST_P(StoreConformance, An_overtaken_owner_cannot_store_a_suspicion) {
  Claimant first(*store_, clock_, "relay-1");
  first.lease();
  clock_.advance(Claimant::lease_time + milliseconds(1));
  Claimant second(*store_, clock_, "relay-2");
  second.lease();
  auto request = first.settle_request();
  request.suspicions = {{Partition(0), {9, Seq(1)}}};

  EXPECT_THAT(first.settle(request).lost, SizeIs(partitions_of(*store_)));
  EXPECT_EQ(suspicion_in(second.lease()), Suspicion{1});
}

TEST_P(StoreConformance, Status_shows_the_suspicion_of_each_partition) {
  taken_over_from(1, *store_, clock_);
  Claimant relay(*store_, clock_, "relay");
  relay.lease();
  auto request = relay.settle_request();
  request.suspicions = {{Partition(0), {2, Seq(17)}}};
  relay.settle(request);

  const auto status = value_of(harness_->open_operations()->status(clock_.wall(), soon()));

  EXPECT_EQ(status.partitions.at(0).suspicion, (Suspicion{2, Seq(17)}));
}

/// A lease of `claimant` that came within a real second or ten: a server does not notice the end
/// of a session in no time.
LeaseGrant lease_in_time(Claimant& claimant) {
  const auto deadline = Deadline::after(seconds(10));
  auto grant = claimant.lease();
  while (grant.leases.empty() && !deadline.passed())
    grant = claimant.lease();
  return grant;
}

TEST_P(StoreConformance, An_owner_whose_session_ended_is_overtaken_although_its_lease_still_runs) {
  auto dying = harness_->open_store();
  const auto before = Claimant(*dying, clock_, "relay-1").lease();
  dying.reset();
  Claimant standby(*store_, clock_, "relay-2");

  if (!store_->traits().notices_death) {
    EXPECT_THAT(standby.lease().leases, IsEmpty());
    return;
  }
  const auto grant = lease_in_time(standby);

  ASSERT_THAT(grant.leases, SizeIs(partitions_of(*store_)));
  EXPECT_GT(grant.leases[0].lease.token, before.leases.at(0).lease.token);
  EXPECT_EQ(grant.leases[0].suspicion, Suspicion{1});
  EXPECT_THAT(grant.foreign, IsEmpty());
}

TEST_P(StoreConformance, An_owner_that_lost_its_connection_and_is_overtaken_is_fenced_off) {
  const auto other = harness_->open_store();
  Claimant owner(*other, clock_, "relay-1");
  owner.lease();
  if (!harness_->lose_connections()) GTEST_SKIP() << "no connection can be taken away";
  Claimant standby(*store_, clock_, "relay-2");

  ASSERT_THAT(lease_in_time(standby).leases, SizeIs(partitions_of(*store_)));

  auto request = owner.settle_request();
  request.stopped_routes = {"out"};
  EXPECT_THAT(value_of(other->settle(request, soon())).lost, SizeIs(partitions_of(*store_)));
  EXPECT_THAT(owner.lease().leases, IsEmpty());
}

TEST_P(StoreConformance, An_owner_that_lost_its_connection_keeps_its_lease_when_it_is_back_first) {
  const auto other = harness_->open_store();
  Claimant owner(*other, clock_, "relay-1");
  const auto before = owner.lease();
  if (!harness_->lose_connections()) GTEST_SKIP() << "no connection can be taken away";

  const auto after = owner.lease();

  EXPECT_THAT(Claimant(*store_, clock_, "relay-2").lease().leases, IsEmpty());
  EXPECT_EQ(after.leases.at(0).lease, before.leases.at(0).lease);
  EXPECT_FALSE(after.leases.at(0).gained);
}

TEST_P(StoreConformance, Paused_routes_come_with_every_grant) {
  const auto operations = harness_->open_operations();
  const Operator ann{"ann", "maintenance"};
  value_of(operations->route_pause("out", ann, clock_.wall(), soon()));
  value_of(operations->route_pause("audit", ann, clock_.wall(), soon()));
  Claimant relay(*store_, clock_);

  EXPECT_THAT(relay.lease().paused_routes, ::testing::UnorderedElementsAre("out", "audit"));
  value_of(operations->route_resume("out", ann, clock_.wall(), soon()));
  EXPECT_THAT(relay.lease().paused_routes, ElementsAre("audit"));
}

}  // namespace
}  // namespace postrider::testing
