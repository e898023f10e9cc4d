#pragma once
/// \file
/// One connection that reads one queue: its messages one by one, acknowledged by hand.
///
/// A message comes as basic.deliver, a content header, and its body in as many frames as it takes.
/// Frames of a channel are in order, so there is at most one message half read.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <postrider/clock.hpp>
#include <postrider/result.hpp>

#include "broker/amqp/amqp_link.hpp"

namespace postrider::amqp {

/// A message as it came off the queue.
struct ReceivedMessage {
  std::uint64_t tag = 0;
  bool redelivered = false;
  std::string type;
  std::string body;
  bool too_big = false;  ///< `body` is cut off
};

/// Thread safety and blocking: as of `Link`. Any error means that the connection is of no use any
/// more, as nothing is left to be done on one whose only channel is closed.
class Subscription {
 public:
  /// Reads `queue`, with at most `prefetch` messages unacknowledged. Declares nothing.
  [[nodiscard]] static Result<std::unique_ptr<Subscription>> open(const LinkSettings& settings,
                                                                  const std::string& queue,
                                                                  std::size_t prefetch,
                                                                  SocketGuard& guard);

  /// The next message, as far as one is there. Blocking: never.
  [[nodiscard]] Result<std::optional<ReceivedMessage>> next();
  [[nodiscard]] Result<void> acknowledge(std::uint64_t tag);
  /// For good: it goes to the dead letters of its queue, if there are any.
  [[nodiscard]] Result<void> reject(std::uint64_t tag);
  /// Asks for no more messages.
  [[nodiscard]] Result<void> cancel(milliseconds patience);
  void say_goodbye(milliseconds patience) { link_->say_goodbye(patience); }

  void release_buffers() { link_->release_buffers(); }
  [[nodiscard]] int descriptor() const { return link_->descriptor(); }

 private:
  explicit Subscription(std::unique_ptr<Link> link) : link_(std::move(link)) {}

  [[nodiscard]] Result<void> begin(const std::string& queue, std::size_t prefetch);
  /// The message that `frame` completes.
  [[nodiscard]] Result<std::optional<ReceivedMessage>> understand(const amqp_frame_t& frame);
  [[nodiscard]] Result<void> understand_method(const amqp_method_t& method);
  void begin_body(const amqp_frame_t& frame);
  void add_to_body(const amqp_bytes_t& fragment);
  [[nodiscard]] bool is_complete() const { return announced_ && has_header_ && missing_ == 0; }
  [[nodiscard]] Result<void> sent(int status);

  std::unique_ptr<Link> link_;
  ReceivedMessage message_;  // as far as it is read
  bool announced_ = false;
  bool has_header_ = false;
  std::uint64_t missing_ = 0;  // bytes of its body that have not come
};

}  // namespace postrider::amqp
