#include "publisher/amqp/mailbox.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace postrider::amqp {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr DriverNumber first(1);
constexpr DriverNumber second(2);

/// A mailbox whose driver is played by the test.
class MailboxTest : public ::testing::Test {
 protected:
  MailboxTest() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_.data()), 0);
    mailbox_.begin(first, guard_);
    guard_->arm(sockets_[0]);
  }
  ~MailboxTest() override {
    guard_->disarm();
    close(sockets_[0]);
    close(sockets_[1]);
  }

  void open_link() {
    (void)mailbox_.begin_turn(first);
    mailbox_.link_opening();
    ASSERT_TRUE(mailbox_.link_opened(first, 131072));
  }
  void enqueue(std::uint64_t attempt, milliseconds timeout) {
    auto event = std::make_shared<Event>();
    OutgoingMessage message;
    message.attempt = AttemptId(attempt);
    message.event = event;
    message.expires_at = system_clock().steady() + timeout;
    std::vector<OutgoingMessage> messages = {message};
    ASSERT_TRUE(mailbox_.enqueue(messages));
  }
  /// Whether the connection was cut: its other end then reads an end of stream.
  [[nodiscard]] bool was_cut() const {
    char byte = 0;
    return recv(sockets_[1], &byte, 1, MSG_DONTWAIT) == 0;
  }
  [[nodiscard]] static Outcome lost() { return Outcome::unavailable("connection_lost", ""); }

  std::array<int, 2> sockets_{-1, -1};
  std::shared_ptr<SocketGuard> guard_ = std::make_shared<SocketGuard>();
  Mailbox mailbox_{Mailbox::Limits{10, milliseconds(50), Outcome::rejected("unroutable", "")}};
};

TEST_F(MailboxTest, ADriverThatIsLeftBehindInANameResolutionDoesNothingAnyMore) {
  (void)mailbox_.begin_turn(first);
  mailbox_.link_opening();
  mailbox_.ask_to_end();
  EXPECT_FALSE(mailbox_.await_end(Deadline::after(milliseconds(1))));
  EXPECT_FALSE(mailbox_.await_end_or_disown(Deadline::after(milliseconds(1))));
  mailbox_.begin(second, std::make_shared<SocketGuard>());

  EXPECT_FALSE(mailbox_.link_opened(first, 131072));
  mailbox_.link_failed(first, Error{});
  mailbox_.ended(first);
  EXPECT_TRUE(mailbox_.begin_turn(first).end);

  EXPECT_FALSE(mailbox_.begin_turn(second).end);
  EXPECT_FALSE(mailbox_.await_end(Deadline::after(milliseconds(1))));
  EXPECT_EQ(mailbox_.await_link(Deadline::after(milliseconds(1))).error().code, ErrorCode::timeout);
}

TEST_F(MailboxTest, ADriverThatIsNotOpeningIsWaitedFor) {
  open_link();
  mailbox_.ask_to_end();
  std::thread driver([&] {
    while (!mailbox_.begin_turn(first).end)
      std::this_thread::yield();
    mailbox_.ended(first);
  });
  EXPECT_TRUE(mailbox_.await_end_or_disown(Deadline::after(milliseconds(0))));
  driver.join();
}

TEST_F(MailboxTest, ATurnThatTakesTooLongIsCut) {
  open_link();
  EXPECT_FALSE(was_cut());
  (void)mailbox_.collect(Deadline::after(milliseconds(300)));
  EXPECT_TRUE(was_cut());
}

TEST_F(MailboxTest, AWriteIsCutWhenItsMessageExpiresAndNotBefore) {
  open_link();
  enqueue(1, milliseconds(400));
  ASSERT_TRUE(mailbox_.next_to_write().has_value());
  EXPECT_TRUE(mailbox_.collect(Deadline::after(milliseconds(100))).empty());
  EXPECT_FALSE(was_cut());
  const auto outcomes = mailbox_.collect(Deadline::after(seconds(10)));
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].outcome.kind, OutcomeKind::unknown);
  EXPECT_TRUE(was_cut());
}

TEST_F(MailboxTest, WhatIsNotYetWrittenWhenTheLinkGoesIsUnavailable) {
  open_link();
  enqueue(1, seconds(10));
  enqueue(2, seconds(10));
  ASSERT_TRUE(mailbox_.next_to_write().has_value());
  mailbox_.link_lost("gone", lost());
  const auto outcomes = mailbox_.collect(Deadline::after(seconds(1)));
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_TRUE(outcomes[0].outcome.connection_lost);
  EXPECT_EQ(outcomes[1].outcome, lost());
}

TEST_F(MailboxTest, ALinkThatWentAwayTakesNoMessages) {
  open_link();
  mailbox_.link_lost("gone", lost());
  std::vector<OutgoingMessage> messages(1);
  EXPECT_FALSE(mailbox_.enqueue(messages));
  EXPECT_EQ(messages.size(), 1U);
}

TEST_F(MailboxTest, ASlowBrokerLetsQueuedMessagesExpireAsStalled) {
  open_link();
  enqueue(1, milliseconds(10));
  const auto outcomes = mailbox_.collect(Deadline::after(seconds(10)));
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].outcome.kind, OutcomeKind::unavailable);
  EXPECT_EQ(outcomes[0].outcome.code, "stalled");
}

TEST_F(MailboxTest, ACutForGoodIsForLaterConnectionsToo) {
  guard_->disarm();
  guard_->cut_for_good();
  EXPECT_FALSE(was_cut());
  guard_->arm(sockets_[0]);
  EXPECT_TRUE(was_cut());
}

}  // namespace
}  // namespace postrider::amqp
