// How a store fails: within its deadline, without half a change, and able to go on afterwards.

#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr milliseconds short_patience{200};

void expect_gave_up(const Error& error) {
  EXPECT_TRUE(error.code == ErrorCode::timeout || error.code == ErrorCode::busy) << describe(error);
  EXPECT_EQ(error.disposition, Disposition::retry) << describe(error);
}

TEST_P(StoreConformance, A_write_to_a_locked_database_gives_up_at_its_deadline) {
  auto lock = harness_->lock_database();
  if (lock == nullptr) GTEST_SKIP() << "the database cannot be locked here";
  const auto event = order_event("1");

  const auto refused = store_->add(std::vector{event}, Deadline::after(short_patience));

  ASSERT_FALSE(refused.ok());
  expect_gave_up(refused.error());
  lock.reset();
  EXPECT_THAT(add(*store_, {event}), ElementsAre(*event.id));
}

TEST_P(StoreConformance, A_passed_deadline_on_a_locked_database_changes_nothing) {
  Claimant relay(*store_, clock_);
  relay.lease();
  add(*store_, {order_event("1")});
  const auto batch = relay.claim();
  const auto request = routing(relay.settle_request(), batch.events.at(0));
  auto lock = harness_->lock_database();
  if (lock == nullptr) GTEST_SKIP() << "the database cannot be locked here";

  const auto refused = store_->settle(request, Deadline::after(milliseconds(0)));

  ASSERT_FALSE(refused.ok());
  expect_gave_up(refused.error());
  lock.reset();
  EXPECT_THAT(relay.claim_all().events, ::testing::SizeIs(1));
  EXPECT_THAT(relay.settle(request).stale_events, IsEmpty());
}

TEST_P(StoreConformance, A_lease_of_a_locked_database_gives_up_at_its_deadline) {
  auto lock = harness_->lock_database();
  if (lock == nullptr) GTEST_SKIP() << "the database cannot be locked here";
  LeaseRequest request;
  request.owner = "relay-1";
  request.lease_time = Claimant::lease_time;
  request.at_most = 1;
  request.now = clock_.wall();

  const auto refused = store_->lease(request, Deadline::after(short_patience));

  ASSERT_FALSE(refused.ok());
  expect_gave_up(refused.error());
  lock.reset();
  EXPECT_THAT(Claimant(*store_, clock_, "relay-2").lease().foreign, IsEmpty());
}

TEST_P(StoreConformance, After_a_lost_connection_the_store_connects_again) {
  Claimant relay(*store_, clock_);
  relay.lease();
  const auto ids = add(*store_, {order_event("1")});
  if (!harness_->lose_connections()) GTEST_SKIP() << "connections cannot be ended here";

  const auto first = store_->claim(relay.claim_request({ReadMark()}), soon());

  if (!first.ok()) {
    EXPECT_EQ(first.error().code, ErrorCode::unavailable) << describe(first.error());
    EXPECT_EQ(first.error().disposition, Disposition::retry);
  }
  EXPECT_THAT(ids_of(relay.claim_all()), ElementsAre(ids[0]));
}

TEST_P(StoreConformance, A_write_on_a_lost_connection_can_be_repeated) {
  const auto event = order_event("1");
  add(*store_, {order_event("2")});
  if (!harness_->lose_connections()) GTEST_SKIP() << "connections cannot be ended here";

  const auto first = store_->add(std::vector{event}, soon());

  if (!first.ok()) {
    EXPECT_EQ(first.error().code, ErrorCode::unavailable) << describe(first.error());
    EXPECT_EQ(first.error().disposition, Disposition::retry);
    EXPECT_THAT(add(*store_, {event}), ElementsAre(*event.id));
  }
}

TEST_P(StoreConformance, An_error_names_its_origin_and_holds_no_payload) {
  const auto event = order_event("1", "the-secret-payload");
  add(*store_, {event});

  const auto refused = store_->add(std::vector{event}, soon());

  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().origin, store_->traits().name);
  EXPECT_THAT(describe(refused.error()), Not(HasSubstr("the-secret-payload")));
  EXPECT_TRUE(refused.error().message.ends_with('.')) << refused.error().message;
}

TEST_P(StoreConformance, The_traits_are_true) {
  const auto traits = store_->traits();

  EXPECT_NE(traits.name, "");
  EXPECT_GE(traits.partitions, 1);
  EXPECT_LE(traits.partitions, 16'384) << "there are no more slots than that";
}

}  // namespace
}  // namespace postrider::testing
