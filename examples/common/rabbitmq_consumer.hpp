#pragma once
/// \file
/// A consumer for RabbitMQ, small and sound: manual acknowledgement after the commit, a prefetch,
/// and a new connection when the old one is gone.

#include <chrono>
#include <functional>
#include <string>

#include <postrider/event.hpp>
#include <postrider/result.hpp>

namespace examples {

struct RabbitmqConsumerOptions {
  std::string url;       ///< amqp://user:password@host:port/vhost
  std::string exchange;  ///< topic, durable; declared
  std::string queue;     ///< durable, with a single active consumer; declared and bound to all
  int prefetch = 50;     ///< messages that the broker sends ahead
  std::chrono::milliseconds reconnect_after{500};
};

/// Takes one event, and returns when it is committed.
using EventHandler = std::function<postrider::Result<void>(const postrider::Event&)>;

/// Runs until `stopped` says so, which is asked several times a second.
///
/// Order: that of the queue. A message whose handling may succeed later (`retry`) ends the
///   connection, so that it and all behind it come again in their order. One that never will
///   (`reject`) is rejected, into the queue's dead letters if it has some.
/// Errors: told on standard error, without payloads; the connection is made anew.
void consume(const RabbitmqConsumerOptions& options, const EventHandler& handler,
             const std::function<bool()>& stopped);

}  // namespace examples
