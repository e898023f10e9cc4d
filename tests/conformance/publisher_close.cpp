// The end of a connection, and life after it.

#include "conformance/publisher_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_P(PublisherConformance, Closing_what_was_never_opened_is_harmless) {
  EXPECT_THAT(publisher_->close(soon()), IsEmpty());
  EXPECT_THAT(publisher_->close(soon()), IsEmpty());
}

TEST_P(PublisherConformance, Closing_twice_is_harmless) {
  Sender sender(*publisher_);
  expect_all_confirmed(sender.send({sendable()}), 1);

  EXPECT_THAT(publisher_->close(soon()), IsEmpty());
  EXPECT_THAT(publisher_->close(soon()), IsEmpty());
}

TEST_P(PublisherConformance, What_is_in_flight_comes_out_of_close_or_came_out_before) {
  const auto events = sendables(publisher_->traits().window);
  Sender sender(*publisher_);
  const auto attempts = sender.submit(events);

  sender.close();

  EXPECT_EQ(sender.in_flight(), 0U);
  for (const auto attempt : attempts) {
    const auto kind = sender.outcome_of(attempt).kind;
    EXPECT_TRUE(kind == OutcomeKind::unknown || kind == OutcomeKind::confirmed) << to_string(kind);
  }
  EXPECT_EQ(sender.poll(Deadline::after(milliseconds(100))), 0U);
}

TEST_P(PublisherConformance, What_close_called_confirmed_has_arrived) {
  const auto events = sendables(5);
  Sender sender(*publisher_);
  const auto attempts = sender.submit({events.at(0)});

  sender.close();

  if (sender.outcome_of(attempts.at(0)).kind == OutcomeKind::confirmed) {
    EXPECT_THAT(harness_->received(), SizeIs(1));
  }
}

TEST_P(PublisherConformance, A_submit_after_close_connects_again) {
  Sender sender(*publisher_);
  expect_all_confirmed(sender.send({sendable()}), 1);
  sender.close();

  expect_all_confirmed(sender.send({sendable()}), 1);

  EXPECT_THAT(harness_->received(), SizeIs(2));
}

TEST_P(PublisherConformance, Closing_and_connecting_can_be_repeated) {
  Sender sender(*publisher_);
  for (int round = 0; round < 5; ++round) {
    expect_all_confirmed(sender.send({sendable()}), 1);
    sender.close();
  }

  EXPECT_THAT(harness_->received(), SizeIs(5));
}

TEST_P(PublisherConformance, A_publisher_with_messages_in_flight_can_be_destroyed) {
  Sender(*publisher_).submit(sendables(publisher_->traits().window));

  publisher_.reset();

  publisher_ = harness_->open_publisher();
  expect_all_confirmed(Sender(*publisher_).send({sendable()}), 1);
}

TEST_P(PublisherConformance, A_publisher_of_a_destination_that_went_away_can_be_closed) {
  Sender sender(*publisher_);
  expect_all_confirmed(sender.send({sendable()}), 1);
  if (!harness_->take_down()) GTEST_SKIP() << "this destination cannot be taken away";

  sender.close();

  ASSERT_TRUE(harness_->bring_up());
  expect_all_confirmed(sender.send({sendable()}), 1);
}

}  // namespace
}  // namespace postrider::testing
