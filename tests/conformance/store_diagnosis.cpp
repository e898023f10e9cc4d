// What `diagnose_work` says of a database, on every store.

#include <postrider/diagnosis.hpp>

#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<Finding> diagnosis_of(StoreHarness& harness, Timestamp now) {
  const auto operations = harness.open_operations();
  const auto status = value_of(operations->status(now, soon()));
  return diagnose_work(status, value_of(operations->dead_letters({}, soon())));
}

std::vector<std::string> codes_of(const std::vector<Finding>& findings) {
  std::vector<std::string> codes;
  for (const auto& finding : findings) {
    EXPECT_FALSE(finding.what.empty() || finding.why.empty() || finding.fix.empty());
    codes.push_back(finding.code);
  }
  return codes;
}

TEST_P(StoreConformance, Nothing_is_wrong_with_a_fresh_database_or_one_at_work) {
  EXPECT_THAT(diagnosis_of(*harness_, clock_.wall()), IsEmpty());
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"));
  EXPECT_THAT(diagnosis_of(*harness_, clock_.wall()), IsEmpty());
  relay.release();
  EXPECT_THAT(diagnosis_of(*harness_, clock_.wall()), IsEmpty());
}

TEST_P(StoreConformance, Held_events_and_paused_routes_are_diagnosed) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto now = clock_.wall();
  store_held(*store_, relay, order_event("1"));
  value_of(harness_->open_operations()->route_pause("out", {"ann", "why"}, now, soon()));

  const auto findings = diagnosis_of(*harness_, now);

  EXPECT_THAT(codes_of(findings), UnorderedElementsAre("events_held", "route_paused"));
}

TEST_P(StoreConformance, Dead_letters_that_halt_are_diagnosed_by_their_aggregate) {
  Claimant relay(*store_, clock_);
  relay.lease();
  store_delivery(*store_, relay, order_event("1"), dead(OnFailed::skip));
  EXPECT_THAT(codes_of(diagnosis_of(*harness_, clock_.wall())), ElementsAre("dead_letters"));

  store_delivery(*store_, relay, order_event("7"), dead());

  const auto findings = diagnosis_of(*harness_, clock_.wall());
  ASSERT_THAT(codes_of(findings), ElementsAre("aggregates_halted"));
  EXPECT_EQ(findings[0].subject, "order/7 on route out");
}

TEST_P(StoreConformance, Events_that_nobody_delivers_are_diagnosed) {
  add(*store_, {order_event("1")});
  const auto created =
      value_of(harness_->open_operations()->events({}, std::nullopt, soon())).events.at(0);

  const auto findings = diagnosis_of(*harness_, created.created_at + minutes(2));

  ASSERT_THAT(codes_of(findings), ElementsAre("no_relay"));
  EXPECT_THAT(findings[0].what, HasSubstr("1 events wait, the oldest for 120 s"));
}

TEST_P(StoreConformance, Events_that_a_relay_does_not_reach_are_diagnosed) {
  add(*store_, {order_event("1")});
  const auto created =
      value_of(harness_->open_operations()->events({}, std::nullopt, soon())).events.at(0);
  ManualClock late;
  late.advance(std::chrono::duration_cast<milliseconds>(created.created_at - late.wall()) +
               minutes(6));
  Claimant relay(*store_, late);
  relay.lease();

  EXPECT_THAT(codes_of(diagnosis_of(*harness_, late.wall())), ElementsAre("events_old"));
}

TEST_P(StoreConformance, Leases_that_ran_out_are_diagnosed) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto findings = diagnosis_of(*harness_, clock_.wall() + minutes(3));
  ASSERT_THAT(codes_of(findings), ElementsAre("lease_lapsed"));
  EXPECT_THAT(findings[0].what, HasSubstr("up to 150 s ago"));
}

TEST_P(StoreConformance, A_lease_from_a_clock_that_has_gone_back_is_diagnosed) {
  Claimant relay(*store_, clock_);
  relay.lease(1);
  const auto findings = diagnosis_of(*harness_, clock_.wall() - hours(1));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].code, "lease_far_ahead");
  EXPECT_EQ(findings[0].severity, FindingSeverity::error);
  EXPECT_EQ(findings[0].subject, "relay-1");
}

TEST_P(StoreConformance, Relays_that_die_one_after_the_other_are_diagnosed) {
  for (const auto* owner : {"relay-1", "relay-2", "relay-3"}) {
    Claimant relay(*store_, clock_, owner);
    relay.lease();
    clock_.advance(Claimant::lease_time + minutes(1));
  }
  Claimant last(*store_, clock_, "relay-4");
  last.lease();

  const auto findings = diagnosis_of(*harness_, clock_.wall());

  ASSERT_THAT(codes_of(findings), ElementsAre("relays_crash"));
  EXPECT_THAT(findings[0].what, HasSubstr("3 owners"));
}

TEST_P(StoreConformance, Partitions_without_an_owner_beside_others_are_diagnosed) {
  if (store_->traits().partitions < 2) GTEST_SKIP() << "there is one partition";
  Claimant relay(*store_, clock_);
  relay.lease(1);
  EXPECT_THAT(codes_of(diagnosis_of(*harness_, clock_.wall())),
              ElementsAre("partitions_without_owner"));
}

}  // namespace
}  // namespace postrider::testing
