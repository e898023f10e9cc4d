#pragma once
/// \file
/// RabbitMQ (AMQP 0-9-1) as destination, over rabbitmq-c: persistent, mandatory, with publisher
/// confirms. What each outcome means: docs/brokers/rabbitmq.md.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/publisher.hpp>

namespace postrider {

/// What becomes of a message that reaches no queue: the broker sends it back.
enum class Unroutable : std::uint8_t {
  retry,  ///< `refused`: tried again by the route's delays, a dead letter after the last
  fail,   ///< `rejected`: a dead letter at once; `dead retry` delivers it when a queue is bound
};

[[nodiscard]] constexpr std::string_view to_string(Unroutable unroutable) noexcept {
  return unroutable == Unroutable::retry ? "retry" : "fail";
}
[[nodiscard]] constexpr std::optional<Unroutable> parse_unroutable(std::string_view text) noexcept {
  for (const auto unroutable : {Unroutable::retry, Unroutable::fail}) {
    if (to_string(unroutable) == text) return unroutable;
  }
  return std::nullopt;
}

struct AmqpOptions {
  std::string url;       ///< amqp://user:password@host:port/vhost, amqps:// for TLS
  std::string exchange;  ///< empty: the default exchange, whose routing key is a queue's name
  /// Template: {type}, {aggregate_type}, {aggregate_id} and {header:NAME} are replaced.
  std::string routing_key = "{type}";
  std::string ca_file;  ///< amqps: trusted authorities; empty: the system's
  std::string certificate_file;
  std::string key_file;
  std::size_t window = 1000;
  milliseconds heartbeat{10'000};  ///< 1 s to 10 min
  /// Of each of connecting, login and opening the channel. 1 ms to 10 min.
  milliseconds connect_timeout{5'000};
  Unroutable unroutable = Unroutable::fail;
};

/// Every fault of `options` at once, one sentence each. The password is in none of them.
[[nodiscard]] std::vector<std::string> validate(const AmqpOptions& options);

/// Nothing is connected before the first submit.
[[nodiscard]] std::unique_ptr<Publisher> make_amqp_publisher(AmqpOptions options);

}  // namespace postrider
