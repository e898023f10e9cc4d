// Every message has exactly one outcome, and `poll` waits for it as long as it was asked to.

#include <chrono>

#include "conformance/publisher_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr milliseconds a_moment{100};
/// How much earlier than promised a clock may seem to go off.
constexpr milliseconds clock_slack{20};

template <class Call>
milliseconds time_of(const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
}

TEST_P(PublisherConformance, Every_message_has_exactly_one_outcome) {
  const auto count = publisher_->traits().window;
  Sender sender(*publisher_);

  sender.submit(sendables(count));
  sender.await_all();

  EXPECT_EQ(sender.poll(Deadline::after(a_moment)), 0U);
}

TEST_P(PublisherConformance, Messages_may_be_submitted_while_others_are_in_flight) {
  if (publisher_->traits().window < 3) GTEST_SKIP() << "the window holds too few messages";
  Sender sender(*publisher_);
  const auto events = sendables(3);
  sender.submit({events[0]});
  sender.submit({events[1]});
  sender.poll(soon());

  sender.submit({events[2]});
  sender.await_all();

  EXPECT_THAT(harness_->received(), SizeIs(3));
}

TEST_P(PublisherConformance, Submitting_nothing_has_no_outcome) {
  Sender sender(*publisher_);

  sender.submit({});

  EXPECT_EQ(sender.poll(Deadline::after(a_moment)), 0U);
  EXPECT_THAT(harness_->received(), IsEmpty());
}

TEST_P(PublisherConformance, Nothing_in_flight_is_awaited_until_the_deadline) {
  Sender sender(*publisher_);

  const auto waited = time_of([&] { EXPECT_EQ(sender.poll(Deadline::after(a_moment)), 0U); });

  EXPECT_GE(waited, a_moment - clock_slack);
  EXPECT_LT(waited, std::chrono::seconds(10));
}

TEST_P(PublisherConformance, The_same_holds_on_an_open_connection) {
  Sender sender(*publisher_);
  expect_all_confirmed(sender.send({sendable()}), 1);

  const auto waited = time_of([&] { EXPECT_EQ(sender.poll(Deadline::after(a_moment)), 0U); });

  EXPECT_GE(waited, a_moment - clock_slack);
  EXPECT_LT(waited, std::chrono::seconds(10));
}

TEST_P(PublisherConformance, A_poll_without_patience_returns_at_once) {
  Sender sender(*publisher_);

  const auto waited =
      time_of([&] { EXPECT_EQ(sender.poll(Deadline::after(milliseconds(0))), 0U); });

  EXPECT_LT(waited, std::chrono::seconds(5));
}

TEST_P(PublisherConformance, Outcomes_come_out_of_polls_without_patience_too) {
  Sender sender(*publisher_);
  sender.submit(sendables(1));
  const auto deadline = soon();

  while (sender.in_flight() > 0 && !deadline.passed()) {
    sender.poll(Deadline::after(milliseconds(0)));
  }

  EXPECT_EQ(sender.in_flight(), 0U);
}

TEST_P(PublisherConformance, A_poll_ends_with_the_first_outcome_and_not_with_its_deadline) {
  Sender sender(*publisher_);
  sender.submit(sendables(1));

  const auto waited =
      time_of([&] { EXPECT_EQ(sender.poll(Deadline::after(std::chrono::seconds(60))), 1U); });

  EXPECT_LT(waited, std::chrono::seconds(30));
}

TEST_P(PublisherConformance, A_confirmed_outcome_has_neither_code_nor_wait) {
  const auto outcomes = Sender(*publisher_).send({sendable()});

  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0], Outcome::confirmed());
}

TEST_P(PublisherConformance, A_message_that_is_not_answered_in_time_is_unknown) {
  Sender sender(*publisher_);
  expect_all_confirmed(sender.send({sendable()}), 1);
  if (!harness_->freeze()) GTEST_SKIP() << "this destination cannot be made to fall silent";
  sender.set_timeout(milliseconds(500));

  const auto attempts = sender.submit({sendable("late")});
  sender.await_all();

  EXPECT_EQ(to_string(sender.outcome_of(attempts.at(0)).kind), "unknown");
  ASSERT_TRUE(harness_->thaw());
}

TEST_P(PublisherConformance, A_late_answer_is_ignored) {
  Sender sender(*publisher_);
  expect_all_confirmed(sender.send({sendable()}), 1);
  if (!harness_->freeze()) GTEST_SKIP() << "this destination cannot be made to fall silent";
  sender.set_timeout(milliseconds(500));
  sender.submit({sendable("late")});
  sender.await_all();
  ASSERT_TRUE(harness_->thaw());

  EXPECT_EQ(sender.poll(Deadline::after(std::chrono::seconds(1))), 0U);
  sender.set_timeout(std::chrono::seconds(30));
  const auto again = sender.try_send({sendable("next")});
  if (again.at(0).kind != OutcomeKind::confirmed) {
    expect_all_confirmed(sender.try_send({sendable("next")}), 1);
  }
}

}  // namespace
}  // namespace postrider::testing
