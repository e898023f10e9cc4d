#include "common/http_publisher.hpp"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace examples {
namespace {

using postrider::Deadline;
using postrider::Event;
using postrider::Message;
using postrider::MessageOutcome;
using postrider::Outcome;
using postrider::Result;

constexpr std::size_t most_in_flight = 100;
constexpr std::string_view plain_characters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
constexpr std::string_view hex_digits = "0123456789ABCDEF";

std::string encoded(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (plain_characters.find(c) != std::string_view::npos) {
      result += c;
    } else {
      result += {'%', hex_digits[byte >> 4U], hex_digits[byte & 15U]};
    }
  }
  return result;
}

std::string decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto high = i + 2 < text.size() ? hex_digits.find(text[i + 1]) : std::string_view::npos;
    const auto low = i + 2 < text.size() ? hex_digits.find(text[i + 2]) : std::string_view::npos;
    if (text[i] != '%' || high == std::string_view::npos || low == std::string_view::npos) {
      result += text[i];
      continue;
    }
    result += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return result;
}

HttpRequest request_of(const std::string& target, const Event& event) {
  HttpRequest request{"POST", target, {}, event.payload};
  request.headers = {{"content-type", event.content_type},
                     {"postrider-id", event.id.value().to_string()},
                     {"postrider-seq", std::to_string(event.seq.value())},
                     {"postrider-type", encoded(event.type)}};
  if (event.aggregate) {
    request.headers["postrider-aggregate-type"] = encoded(event.aggregate->type);
    request.headers["postrider-aggregate-id"] = encoded(event.aggregate->id);
  }
  return request;
}

Outcome outcome_of_status(int status) {
  const auto detail = "HTTP " + std::to_string(status);
  if (status >= 200 && status < 300) return Outcome::confirmed();
  if (status == 408 || status == 429 || status >= 500) return Outcome::refused("http", detail);
  return Outcome::rejected("http", detail);
}

Outcome outcome_of_exchange(const Result<HttpResponse>& exchange) {
  if (exchange) return outcome_of_status(exchange.value().status);
  const bool cut = exchange.error().code == postrider::ErrorCode::protocol;
  return cut ? Outcome::lost_connection(exchange.error().message) : outcome_of(exchange.error());
}

class HttpPublisher final : public postrider::Publisher {
 public:
  explicit HttpPublisher(HttpPublisherOptions options) : options_(std::move(options)) {}

  postrider::PublisherTraits traits() const override {
    postrider::PublisherTraits traits;
    traits.name = "http";
    traits.window = most_in_flight;
    traits.most_payload_bytes = most_http_payload_bytes;
    traits.keeps_headers = false;
    return traits;
  }

  Result<void> submit(std::span<const Message> messages, Deadline) override {
    {
      const std::lock_guard lock(mutex_);
      for (const auto& message : messages)
        accept(message);
    }
    changed_.notify_all();
    if (!sender_.joinable()) sender_ = std::jthread([this](std::stop_token stop) { send(stop); });
    return {};
  }

  std::vector<MessageOutcome> poll(Deadline deadline) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, deadline.remaining(), [this] { return woken_ || !answered_.empty(); });
    woken_ = false;
    return std::exchange(answered_, {});
  }

  void wake() noexcept override {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    changed_.notify_all();
  }

  /// The exchange that runs is waited for, at most for its message's timeout.
  std::vector<MessageOutcome> close(Deadline) override {
    {
      const std::lock_guard lock(mutex_);
      for (const auto& each : std::exchange(waiting_, {}))
        answered_.push_back({each.message.attempt, Outcome::unknown("closed", "never sent")});
    }
    sender_ = {};
    return std::exchange(answered_, {});
  }

 private:
  struct Waiting {
    Message message;
    Deadline deadline;
  };

  void accept(const Message& message) {
    if (message.event->payload.size() > most_http_payload_bytes) {
      answered_.push_back({message.attempt, Outcome::rejected("too_large", "more than 1 MiB")});
    } else {
      waiting_.push_back({message, Deadline::after(message.timeout)});
    }
  }

  void send(const std::stop_token& stop) {
    while (const auto next = take(stop)) {
      const auto exchange = send_http(
          options_.port, request_of(options_.target, *next->message.event), next->deadline);
      {
        const std::lock_guard lock(mutex_);
        answered_.push_back({next->message.attempt, outcome_of_exchange(exchange)});
      }
      changed_.notify_all();
    }
  }

  std::optional<Waiting> take(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) return std::nullopt;
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    return next;
  }

  const HttpPublisherOptions options_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Waiting> waiting_;
  std::vector<MessageOutcome> answered_;
  bool woken_ = false;
  std::jthread sender_;  // ends before what it uses
};

postrider::Error bad_header(const std::string& name) {
  return {postrider::ErrorCode::invalid_argument, postrider::Disposition::reject,
          "The header " + name + " is missing or wrong.", "http", ""};
}

}  // namespace

std::unique_ptr<postrider::Publisher> make_http_publisher(HttpPublisherOptions options) {
  return std::make_unique<HttpPublisher>(std::move(options));
}

Result<Event> event_of(const HttpRequest& request) {
  const auto header = [&](const std::string& name) {
    const auto found = request.headers.find(name);
    return found == request.headers.end() ? std::string() : found->second;
  };
  Event event;
  const auto id = postrider::Uuid::parse(header("postrider-id"));
  if (!id) return bad_header("postrider-id");
  event.id = postrider::EventId(id.value());
  const auto seq = header("postrider-seq");
  std::int64_t number = 0;
  if (std::from_chars(seq.data(), seq.data() + seq.size(), number).ec != std::errc()) {
    return bad_header("postrider-seq");
  }
  event.seq = postrider::Seq(number);
  event.type = decoded(header("postrider-type"));
  if (event.type.empty()) return bad_header("postrider-type");
  event.content_type = header("content-type");
  event.payload = request.body;
  const auto aggregate_type = decoded(header("postrider-aggregate-type"));
  const auto aggregate_id = decoded(header("postrider-aggregate-id"));
  if (!aggregate_type.empty() && !aggregate_id.empty()) {
    event.aggregate = postrider::Aggregate{aggregate_type, aggregate_id};
  }
  return event;
}

}  // namespace examples
