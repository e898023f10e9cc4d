#pragma once
/// \file
/// A listener that speaks just enough AMQP 0-9-1 to let a publisher in, and then answers each
/// message as a test's script says: never, twice, wrongly, with garbage.

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace postrider::testing {

/// Frames as bytes.
namespace amqp_frames {
[[nodiscard]] std::string ack(std::uint64_t tag, bool multiple = false);
[[nodiscard]] std::string nack(std::uint64_t tag, bool multiple = false);
[[nodiscard]] std::string channel_close(std::uint16_t code);
[[nodiscard]] std::string connection_close(std::uint16_t code);
[[nodiscard]] std::string blocked();
[[nodiscard]] std::string unblocked();
/// basic.return of an empty message, without the basic.ack that follows it.
[[nodiscard]] std::string returned(const std::string& message_id);
}  // namespace amqp_frames

/// Serves one connection at a time. Thread safety: any thread.
class ScriptedAmqpServer {
 public:
  /// The bytes to send after message `tag` of connection `connection`, both counted from 1. Runs on
  /// the server's thread.
  using Script = std::function<std::string(int connection, std::uint64_t tag)>;

  explicit ScriptedAmqpServer(Script script);
  ~ScriptedAmqpServer();
  ScriptedAmqpServer(const ScriptedAmqpServer&) = delete;
  ScriptedAmqpServer& operator=(const ScriptedAmqpServer&) = delete;

  [[nodiscard]] std::string url() const { return "amqp://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] int connections() const { return connections_; }
  /// Complete messages of the present connection.
  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  /// Of the message that the script is asked about; on its thread only.
  [[nodiscard]] const std::string& body() const { return body_; }
  /// Sends bytes on the present connection.
  void send(const std::string& bytes);

 private:
  struct Frame {
    int type = 0;
    std::uint16_t channel = 0;
    std::string payload;
  };

  void run();
  void serve();
  [[nodiscard]] bool read_frame(Frame& frame);
  [[nodiscard]] bool read_exactly(std::string& into, std::size_t bytes);
  /// What a frame of the client is answered with.
  [[nodiscard]] std::string answer(const Frame& frame);
  [[nodiscard]] std::string answer_method(const Frame& frame);
  [[nodiscard]] std::string message_complete();

  const Script script_;
  int port_ = 0;
  int listener_;
  std::atomic<int> client_{-1};
  std::atomic<int> connections_{0};
  std::atomic<std::uint64_t> messages_{0};
  std::uint64_t body_left_ = 0;
  std::string body_;
  std::atomic<bool> ending_{false};
  std::mutex sending_;
  std::thread thread_;
};

}  // namespace postrider::testing
