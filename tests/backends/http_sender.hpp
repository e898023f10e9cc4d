#pragma once
/// \file
/// What the tests of the HTTP publisher share: a publisher that is handed events and asked what
/// became of them.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/publisher/http.hpp>

namespace postrider::testing {

using std::chrono::seconds;

/// Only a fault waits for so long.
constexpr auto http_patience = seconds(60);

inline constexpr auto old_secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
inline constexpr auto new_secret = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

/// An event of the aggregate order/`aggregate`.
[[nodiscard]] inline std::shared_ptr<Event> http_event(std::uint8_t number,
                                                       std::string aggregate = "1") {
  auto event = std::make_shared<Event>();
  event->seq = Seq(number);
  event->id = EventId(Uuid({0, 0, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, number}));
  event->aggregate = Aggregate{"order", std::move(aggregate)};
  event->type = "order.placed";
  event->payload = "payload " + std::to_string(number);
  event->content_type = "application/json";
  event->created_at = Timestamp(seconds(1'700'000'000));
  return event;
}

/// Options for an endpoint on loopback.
[[nodiscard]] inline HttpOptions loopback_options(std::string url) {
  HttpOptions options;
  options.url = std::move(url);
  options.plain_http = options.url.starts_with("http:");
  options.allow = {"127.0.0.1"};
  return options;
}

class HttpSender {
 public:
  explicit HttpSender(HttpOptions options, const Clock& clock = system_clock())
      : publisher_(make_http_publisher(std::move(options), clock)) {}

  /// Numbers the attempt from 1.
  std::uint64_t submit(const std::shared_ptr<const Event>& event,
                       milliseconds timeout = http_patience) {
    const std::vector<Message> batch{{AttemptId(++attempts_), event, DispatchId(), timeout}};
    const auto submitted = publisher_->submit(batch, Deadline::after(http_patience));
    if (!submitted.ok()) outcomes_.emplace(attempts_, postrider::outcome_of(submitted.error()));
    return attempts_;
  }
  void poll(milliseconds limit) {
    for (auto& [attempt, outcome] : publisher_->poll(Deadline::after(limit))) {
      EXPECT_TRUE(outcomes_.emplace(attempt.value(), std::move(outcome)).second)
          << "a second outcome of attempt " << attempt.value();
    }
  }
  void await_all() {
    const auto give_up = Deadline::after(2 * http_patience);
    while (outcomes_.size() < attempts_ && !give_up.passed())
      poll(seconds(1));
    EXPECT_EQ(outcomes_.size(), attempts_);
  }
  Outcome send(const std::shared_ptr<const Event>& event, milliseconds timeout = http_patience) {
    const auto attempt = submit(event, timeout);
    await_all();
    return of(attempt);
  }

  [[nodiscard]] bool has(std::uint64_t attempt) const { return outcomes_.contains(attempt); }
  [[nodiscard]] Outcome of(std::uint64_t attempt) const {
    const auto found = outcomes_.find(attempt);
    return found != outcomes_.end() ? found->second : Outcome::unknown("no_outcome", "");
  }
  [[nodiscard]] Publisher& publisher() { return *publisher_; }

 private:
  std::unique_ptr<Publisher> publisher_;
  std::uint64_t attempts_ = 0;
  std::map<std::uint64_t, Outcome> outcomes_;
};

/// "unknown http_500", "unknown connection_lost", "confirmed".
[[nodiscard]] inline std::string words_of(const Outcome& outcome) {
  return std::string(to_string(outcome.kind)) + (outcome.code.empty() ? "" : " " + outcome.code);
}

}  // namespace postrider::testing
