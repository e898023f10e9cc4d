#pragma once
/// \file
/// What the tests of the AMQP publisher share: a publisher that is handed events one by one and
/// asked what became of them.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/publisher/amqp.hpp>

#include "servers/need_rabbitmq.hpp"
#include "servers/rabbitmq_server.hpp"

namespace postrider::testing {

using std::chrono::seconds;

/// Five times what anything here takes on a busy machine; only a fault waits for so long.
constexpr auto patience = seconds(20);

[[nodiscard]] inline std::shared_ptr<Event> make_event(std::uint32_t number,
                                                       std::string type = "order.placed") {
  auto event = std::make_shared<Event>();
  event->seq = Seq(number);
  event->id = EventId(
      Uuid({0, 0, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, static_cast<std::uint8_t>(number >> 24U),
            static_cast<std::uint8_t>(number >> 16U), static_cast<std::uint8_t>(number >> 8U),
            static_cast<std::uint8_t>(number)}));
  event->aggregate = Aggregate{"order", "1"};
  event->type = std::move(type);
  event->payload = "payload " + std::to_string(number);
  event->content_type = "application/json";
  event->created_at = Timestamp(seconds(1'700'000'000));
  return event;
}

[[nodiscard]] inline std::string id_of(const Event& event) {
  return event.id.value().to_string();
}

class AmqpSender {
 public:
  explicit AmqpSender(AmqpOptions options) : publisher_(make_amqp_publisher(std::move(options))) {}

  /// The attempt's number.
  std::uint64_t add(const std::shared_ptr<const Event>& event, milliseconds timeout = patience) {
    batch_.push_back({AttemptId(++attempts_), event, DispatchId(), timeout});
    return attempts_;
  }
  /// Submits what was added; what was refused is forgotten.
  Result<void> submit(milliseconds limit = patience) {
    const auto batch = std::exchange(batch_, {});
    return publisher_->submit(batch, Deadline::after(limit));
  }
  /// Polls until every attempt up to the last has its outcome, or patience ends.
  void await_all() { await(static_cast<std::size_t>(attempts_)); }
  void await(std::size_t outcomes) {
    const auto give_up = Deadline::after(patience);
    while (outcomes_.size() < outcomes && !give_up.passed())
      poll(seconds(1));
    EXPECT_GE(outcomes_.size(), outcomes);
  }
  void poll(milliseconds limit) { take(publisher_->poll(Deadline::after(limit))); }
  void close(milliseconds limit = seconds(2)) { take(publisher_->close(Deadline::after(limit))); }

  /// Submits one event and waits for what becomes of it. A failed call counts as its outcome.
  Outcome send(const std::shared_ptr<const Event>& event, milliseconds timeout = patience) {
    const auto attempt = add(event, timeout);
    if (const auto submitted = submit(); !submitted.ok()) {
      outcomes_.emplace(attempt, outcome_of(submitted.error()));
    }
    const auto give_up = Deadline::after(patience);
    while (!has(attempt) && !give_up.passed())
      poll(seconds(1));
    return of(attempt);
  }

  [[nodiscard]] bool has(std::uint64_t attempt) const { return outcomes_.contains(attempt); }
  [[nodiscard]] Outcome of(std::uint64_t attempt) const {
    const auto found = outcomes_.find(attempt);
    if (found != outcomes_.end()) return found->second;
    ADD_FAILURE() << "attempt " << attempt << " has no outcome";
    return Outcome::unknown("no_outcome", "");
  }
  [[nodiscard]] const std::map<std::uint64_t, Outcome>& outcomes() const { return outcomes_; }
  [[nodiscard]] Publisher& publisher() { return *publisher_; }

 private:
  void take(std::vector<MessageOutcome> polled) {
    for (auto& [attempt, outcome] : polled) {
      EXPECT_TRUE(outcomes_.emplace(attempt.value(), std::move(outcome)).second)
          << "a second outcome of attempt " << attempt.value();
    }
  }

  std::unique_ptr<Publisher> publisher_;
  std::uint64_t attempts_ = 0;
  std::vector<Message> batch_;
  std::map<std::uint64_t, Outcome> outcomes_;
};

/// How long `call` took.
template <class Call>
[[nodiscard]] milliseconds duration_of(Call&& call) {
  const auto begin = std::chrono::steady_clock::now();
  std::forward<Call>(call)();
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
}

}  // namespace postrider::testing

/// Failures show the word and not only the number.
namespace postrider {
inline void PrintTo(const Outcome& outcome, std::ostream* out) {  // NOLINT: GoogleTest's name
  *out << to_string(outcome.kind) << " " << outcome.code
       << (outcome.connection_lost ? " (lost)" : "") << ": " << outcome.detail;
}
}  // namespace postrider
