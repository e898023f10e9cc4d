#pragma once
/// \file
/// What the publisher suite is written with: events to send, and a sender that awaits outcomes.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <postrider/testing/publisher_conformance.hpp>

#include "conformance/common_builders.hpp"

namespace postrider::testing {

using EventPtr = std::shared_ptr<const Event>;

/// An event of aggregate order/1.
[[nodiscard]] EventPtr sendable(std::string payload = "{}");
/// `count` of them, each with its number as payload.
[[nodiscard]] std::vector<EventPtr> sendables(std::size_t count);

/// Sends through one publisher and keeps the books: every message must have exactly one outcome.
class Sender {
 public:
  explicit Sender(Publisher& publisher) : publisher_(&publisher) {}

  /// How long a message may stay unanswered; for the messages submitted from now on.
  void set_timeout(milliseconds timeout) { timeout_ = timeout; }

  /// Gives the events to the publisher, which must take them. Returns their attempts.
  std::vector<AttemptId> submit(const std::vector<EventPtr>& events);
  /// Polls until nothing is in flight.
  void await_all();
  /// Polls once; for tests of `poll` itself.
  std::size_t poll(Deadline deadline);
  /// Closes the publisher and takes the outcomes that it returns.
  void close();
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }
  /// Of an attempt that has one.
  [[nodiscard]] const Outcome& outcome_of(AttemptId attempt) const;

  /// Sends all, never more than a window at a time, and returns the outcomes in the same order.
  std::vector<Outcome> send(const std::vector<EventPtr>& events);
  /// The same when `submit` itself may fail: its error is then the outcome of each message.
  std::vector<Outcome> try_send(const std::vector<EventPtr>& events);

 private:
  std::vector<Message> messages_of(const std::vector<EventPtr>& events);
  void record(const std::vector<MessageOutcome>& outcomes);

  Publisher* publisher_;
  milliseconds timeout_ = std::chrono::seconds(30);
  std::uint64_t attempts_ = 0;
  std::size_t in_flight_ = 0;
  std::map<AttemptId, std::vector<Outcome>> outcomes_;
};

[[nodiscard]] std::vector<OutcomeKind> kinds_of(const std::vector<Outcome>& outcomes);
/// Fails the test unless each of them is `confirmed`.
void expect_all_confirmed(const std::vector<Outcome>& outcomes, std::size_t count);
[[nodiscard]] std::vector<std::string> ids_of(const std::vector<EventPtr>& events);
[[nodiscard]] std::vector<std::string> ids_of(const std::vector<Received>& received);

}  // namespace postrider::testing
