// What a destination that is not there looks like, and how it comes back.

#include "conformance/publisher_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::SizeIs;

bool is_outage(const Outcome& outcome) {
  return outcome.kind == OutcomeKind::unavailable ||
         (outcome.kind == OutcomeKind::unknown && outcome.connection_lost);
}

TEST_P(PublisherConformance, A_destination_that_is_down_is_unavailable_and_gets_nothing) {
  if (!harness_->take_down()) GTEST_SKIP() << "this destination cannot be taken away";

  const auto outcomes = Sender(*publisher_).try_send(sendables(3));

  EXPECT_THAT(kinds_of(outcomes), Each(OutcomeKind::unavailable));
  ASSERT_TRUE(harness_->bring_up());
  EXPECT_THAT(harness_->received(), IsEmpty());
}

TEST_P(PublisherConformance, A_destination_that_is_back_needs_no_new_publisher) {
  if (!harness_->take_down()) GTEST_SKIP() << "this destination cannot be taken away";
  Sender sender(*publisher_);
  sender.try_send({sendable()});
  ASSERT_TRUE(harness_->bring_up());

  expect_all_confirmed(sender.send({sendable()}), 1);

  EXPECT_THAT(harness_->received(), SizeIs(1));
}

TEST_P(PublisherConformance, A_destination_that_goes_away_between_messages_is_an_outage) {
  Sender sender(*publisher_);
  expect_all_confirmed(sender.send({sendable()}), 1);
  if (!harness_->take_down()) GTEST_SKIP() << "this destination cannot be taken away";

  const auto first = sender.try_send({sendable()});
  const auto second = sender.try_send({sendable()});

  EXPECT_TRUE(is_outage(first.at(0))) << to_string(first.at(0).kind) << " " << first.at(0).detail;
  EXPECT_EQ(to_string(second.at(0).kind), "unavailable");
  ASSERT_TRUE(harness_->bring_up());
}

TEST_P(PublisherConformance, After_an_outage_an_open_publisher_connects_again) {
  Sender sender(*publisher_);
  expect_all_confirmed(sender.send({sendable()}), 1);
  if (!harness_->take_down()) GTEST_SKIP() << "this destination cannot be taken away";
  sender.try_send({sendable()});
  ASSERT_TRUE(harness_->bring_up());

  const auto event = sendable("after");
  auto outcomes = sender.try_send({event});
  if (is_outage(outcomes.at(0))) outcomes = sender.try_send({event});  // had not noticed before

  expect_all_confirmed(outcomes, 1);
  EXPECT_EQ(ids_of(harness_->received()).back(), event->id.value().to_string());
}

TEST_P(PublisherConformance, An_outage_that_nobody_noticed_costs_no_more_than_one_attempt) {
  Sender sender(*publisher_);
  expect_all_confirmed(sender.send({sendable()}), 1);
  if (!harness_->take_down()) GTEST_SKIP() << "this destination cannot be taken away";
  ASSERT_TRUE(harness_->bring_up());

  const auto event = sendable();
  auto outcomes = sender.try_send({event});
  if (is_outage(outcomes.at(0))) outcomes = sender.try_send({event});

  expect_all_confirmed(outcomes, 1);
}

TEST_P(PublisherConformance, Details_of_failures_hold_no_payload) {
  if (!harness_->take_down()) GTEST_SKIP() << "this destination cannot be taken away";

  const auto outcomes = Sender(*publisher_).try_send({sendable("the-secret-payload")});

  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_NE(outcomes[0].code, "");
  EXPECT_EQ(outcomes[0].detail.find("the-secret-payload"), std::string::npos);
  EXPECT_LE(outcomes[0].detail.size(), Outcome::detail_bytes);
  ASSERT_TRUE(harness_->bring_up());
}

}  // namespace
}  // namespace postrider::testing
