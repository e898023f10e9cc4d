#pragma once
/// \file
/// A queue of RabbitMQ (AMQP 0-9-1) as source of tasks, over rabbitmq-c: manual acknowledgement,
/// bounded prefetch, nothing declared, nothing requeued. See docs/brokers/rabbitmq.md.

#include <memory>
#include <string>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/task_source.hpp>

namespace postrider {

struct AmqpSourceOptions {
  std::string url;      ///< amqp://user:password@host:port/vhost, amqps:// for TLS
  std::string queue;    ///< must exist; 1 to 255 bytes
  std::string ca_file;  ///< amqps: trusted authorities; empty: the system's
  std::string certificate_file;
  std::string key_file;
  milliseconds heartbeat{10'000};  ///< 1 s to 10 min
  /// Of each of connecting, login, opening the channel and asking for tickets. 1 ms to 10 min.
  milliseconds connect_timeout{5'000};
};

/// Every fault of `options` at once, one sentence each. The password is in none of them.
[[nodiscard]] std::vector<std::string> validate(const AmqpSourceOptions& options);

/// Requires: the options pass `validate`. Nothing is connected before `open`.
[[nodiscard]] std::unique_ptr<TaskSource> make_amqp_task_source(AmqpSourceOptions options);

}  // namespace postrider
