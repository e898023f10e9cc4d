#pragma once
/// \file
/// A plain connection to RabbitMQ with which tests prepare and look: it declares, binds, deletes,
/// sends and reads. It shares no code with the publisher that is tested.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace postrider::testing {

/// A message as it lies in a queue.
struct StoredMessage {
  std::string message_id;
  std::string type;
  std::string content_type;
  std::string app_id;
  std::string routing_key;
  std::string body;
  std::map<std::string, std::string, std::less<>> headers;  ///< those that are texts
  std::uint64_t timestamp_s = 0;
  int delivery_mode = 0;
};

/// Arguments of a queue; a value of digits is sent as a number.
using QueueArguments = std::map<std::string, std::string>;

/// Thread safety: one thread at a time. What the broker refuses is thrown.
class RabbitmqSession {
 public:
  /// To 127.0.0.1, as guest.
  explicit RabbitmqSession(int port, const std::string& vhost = "/");
  ~RabbitmqSession();
  RabbitmqSession(const RabbitmqSession&) = delete;
  RabbitmqSession& operator=(const RabbitmqSession&) = delete;

  void declare_exchange(const std::string& name, const std::string& type = "topic");
  void delete_exchange(const std::string& name);
  /// Durable.
  void declare_queue(const std::string& name, const QueueArguments& arguments = {});
  /// How many messages wait in the queue and are with nobody.
  [[nodiscard]] std::size_t ready(const std::string& queue);
  void delete_queue(const std::string& name);
  void bind(const std::string& queue, const std::string& exchange, const std::string& routing_key);
  void unbind(const std::string& queue, const std::string& exchange,
              const std::string& routing_key);
  /// Sends to a queue what anybody might send.
  void send(const std::string& queue, const std::string& type, const std::string& body);
  /// Takes everything that is in the queue.
  std::vector<StoredMessage> take_all(const std::string& queue);

 private:
  void expect_success(const std::string& what);

  void* state_;  ///< rabbitmq-c's connection
};

}  // namespace postrider::testing
