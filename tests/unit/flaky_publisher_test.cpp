// The scripted faults of the test kit, and what its journal keeps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <postrider/testing/memory_publisher.hpp>

namespace postrider::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Deadline now() {
  return Deadline::after(milliseconds(0));
}

Message message(std::uint64_t attempt) {
  Event event;
  event.type = "order.placed";
  event.payload = std::to_string(attempt);
  return {AttemptId(attempt), std::make_shared<const Event>(event), DispatchId(),
          std::chrono::seconds(30)};
}

std::vector<Message> messages(std::uint64_t first, std::uint64_t last) {
  std::vector<Message> made;
  for (auto attempt = first; attempt <= last; ++attempt)
    made.push_back(message(attempt));
  return made;
}

std::vector<std::string> payloads(const Journal& journal) {
  std::vector<std::string> payloads;
  for (const auto& event : journal.accepted())
    payloads.push_back(event->payload);
  return payloads;
}

std::vector<std::uint64_t> attempts(const std::vector<MessageOutcome>& outcomes) {
  std::vector<std::uint64_t> attempts;
  for (const auto& outcome : outcomes)
    attempts.push_back(outcome.attempt.value());
  return attempts;
}

/// An inner publisher that answers when and what the test says.
class SilentPublisher final : public Publisher {
 public:
  PublisherTraits traits() const override { return {}; }
  Result<void> submit(std::span<const Message> messages, Deadline /*deadline*/) override {
    if (refuses_) {
      return Error{ErrorCode::unavailable, Disposition::retry, "not there. Start it.", "test", ""};
    }
    submitted += messages.size();
    return {};
  }
  std::vector<MessageOutcome> poll(Deadline /*deadline*/) override {
    return std::exchange(answers, {});
  }
  void wake() noexcept override { ++woken; }
  std::vector<MessageOutcome> close(Deadline /*deadline*/) override {
    return std::exchange(answers, {});
  }

  void refuse(bool refuses) { refuses_ = refuses; }

  std::size_t submitted = 0;
  int woken = 0;
  std::vector<MessageOutcome> answers;

 private:
  bool refuses_ = false;
};

struct FaultCase {
  Fault fault;
  OutcomeKind kind;
  bool connection_lost;
  bool arrives;
};

TEST(FlakyPublisher, A_fault_decides_what_arrives_and_what_is_said) {
  const std::vector<FaultCase> rows = {
      {Fault::down, OutcomeKind::unknown, false, false},
      {Fault::lost_ack, OutcomeKind::unknown, false, true},
      {Fault::refuse, OutcomeKind::refused, false, false},
      {Fault::reject, OutcomeKind::rejected, false, false},
      {Fault::cut, OutcomeKind::unknown, true, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(static_cast<int>(row.fault));
    const auto journal = std::make_shared<Journal>();
    const auto publisher = make_flaky_publisher(make_memory_publisher(journal), {{1, row.fault}});
    ASSERT_TRUE(publisher->submit(messages(1, 1), now()).ok());

    const auto outcomes = publisher->poll(now());

    ASSERT_THAT(outcomes, SizeIs(1));
    EXPECT_EQ(to_string(outcomes[0].outcome.kind), to_string(row.kind));
    EXPECT_EQ(outcomes[0].outcome.connection_lost, row.connection_lost);
    EXPECT_NE(outcomes[0].outcome.code, "");
    EXPECT_EQ(journal->accepted().size(), row.arrives ? 1U : 0U);
  }
}

TEST(FlakyPublisher, A_relay_cannot_tell_a_lost_answer_from_a_lost_message) {
  const auto publisher = make_flaky_publisher(make_memory_publisher(std::make_shared<Journal>()),
                                              {{1, Fault::down}, {2, Fault::lost_ack}});
  ASSERT_TRUE(publisher->submit(messages(1, 2), now()).ok());

  const auto outcomes = publisher->poll(now());

  ASSERT_THAT(outcomes, SizeIs(2));
  EXPECT_EQ(outcomes[0].outcome, outcomes[1].outcome);
}

TEST(FlakyPublisher, Attempts_are_counted_over_the_life_of_the_publisher) {
  const auto journal = std::make_shared<Journal>();
  const auto publisher =
      make_flaky_publisher(make_memory_publisher(journal), {{2, Fault::reject}, {4, Fault::down}});
  ASSERT_TRUE(publisher->submit(messages(1, 3), now()).ok());
  publisher->close(now());
  ASSERT_TRUE(publisher->submit(messages(4, 5), now()).ok());

  EXPECT_THAT(payloads(*journal), ElementsAre("1", "3", "5"));
}

TEST(FlakyPublisher, The_inner_outcome_is_passed_on_where_no_fault_is_scripted) {
  const auto journal = std::make_shared<Journal>();
  const auto publisher =
      make_flaky_publisher(make_memory_publisher(journal), {{1, Fault::lost_ack}});
  journal->set_down(true);
  ASSERT_TRUE(publisher->submit(messages(1, 2), now()).ok());

  const auto outcomes = publisher->poll(now());

  ASSERT_THAT(outcomes, SizeIs(2));
  EXPECT_EQ(to_string(outcomes[0].outcome.kind), "unknown");
  EXPECT_EQ(to_string(outcomes[1].outcome.kind), "unavailable");
  EXPECT_THAT(journal->accepted(), IsEmpty());
}

TEST(FlakyPublisher, Outcomes_come_out_in_the_order_of_submission) {
  auto inner = std::make_unique<SilentPublisher>();
  auto& silent = *inner;
  const auto publisher = make_flaky_publisher(std::move(inner), {{2, Fault::refuse}});
  ASSERT_TRUE(publisher->submit(messages(1, 3), now()).ok());
  EXPECT_EQ(silent.submitted, 2U);

  silent.answers = {{AttemptId(3), Outcome::confirmed()}};
  EXPECT_THAT(publisher->poll(now()), IsEmpty());
  silent.answers = {{AttemptId(1), Outcome::confirmed()}};
  EXPECT_THAT(attempts(publisher->poll(now())), ElementsAre(1, 2, 3));
  EXPECT_THAT(publisher->poll(now()), IsEmpty());
}

TEST(FlakyPublisher, A_submit_that_failed_inside_leaves_nothing_in_flight) {
  auto inner = std::make_unique<SilentPublisher>();
  auto& silent = *inner;
  const auto publisher = make_flaky_publisher(std::move(inner), {{1, Fault::refuse}});
  silent.refuse(true);

  EXPECT_FALSE(publisher->submit(messages(1, 2), now()).ok());
  EXPECT_THAT(publisher->poll(now()), IsEmpty());

  silent.refuse(false);
  ASSERT_TRUE(publisher->submit(messages(3, 3), now()).ok());
  silent.answers = {{AttemptId(3), Outcome::confirmed()}};
  EXPECT_THAT(attempts(publisher->poll(now())), ElementsAre(3));
}

TEST(FlakyPublisher, A_wake_reaches_the_inner_publisher) {
  auto inner = std::make_unique<SilentPublisher>();
  auto& silent = *inner;
  const auto publisher = make_flaky_publisher(std::move(inner), {});

  publisher->wake();

  EXPECT_EQ(silent.woken, 1);
}

TEST(FlakyPublisher, Close_returns_what_nobody_polled) {
  const auto publisher = make_flaky_publisher(make_memory_publisher(std::make_shared<Journal>()),
                                              {{1, Fault::lost_ack}});
  ASSERT_TRUE(publisher->submit(messages(1, 2), now()).ok());

  const auto outcomes = publisher->close(now());

  ASSERT_THAT(attempts(outcomes), ElementsAre(1, 2));
  EXPECT_EQ(to_string(outcomes[0].outcome.kind), "unknown");
  EXPECT_THAT(publisher->close(now()), IsEmpty());
}

TEST(Journal, It_keeps_repeats_in_order_until_it_is_cleared) {
  const auto journal = std::make_shared<Journal>();
  const auto publisher = make_memory_publisher(journal);
  const auto again = message(1);
  ASSERT_TRUE(publisher->submit(std::vector{again, message(2)}, now()).ok());
  ASSERT_TRUE(publisher->submit(std::vector{again}, now()).ok());

  EXPECT_THAT(payloads(*journal), ElementsAre("1", "2", "1"));
  journal->clear();
  EXPECT_THAT(journal->accepted(), IsEmpty());
}

TEST(Journal, Being_down_is_seen_by_every_publisher_at_once) {
  const auto journal = std::make_shared<Journal>();
  const auto publisher = make_memory_publisher(journal);
  EXPECT_FALSE(journal->down());
  journal->set_down(true);
  ASSERT_TRUE(publisher->submit(messages(1, 1), now()).ok());

  EXPECT_EQ(to_string(publisher->poll(now()).at(0).outcome.kind), "unavailable");
  EXPECT_TRUE(journal->down());
  EXPECT_THAT(journal->accepted(), IsEmpty());
}

}  // namespace
}  // namespace postrider::testing
