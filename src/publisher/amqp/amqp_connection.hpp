#pragma once
/// \file
/// One connection to RabbitMQ with one channel in confirm mode: publishing, reading frames.
///
/// rabbitmq-c 0.11 has no function for confirms, so frames are decoded here: a confirm comes as
/// basic.ack or basic.nack; an unroutable message as basic.return, a content header (which holds
/// the message id), the body, and then its basic.ack.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <postrider/result.hpp>

#include "broker/amqp/amqp_link.hpp"
#include "publisher/amqp/amqp_message.hpp"

namespace postrider::amqp {

struct ConnectionSettings {
  LinkSettings link;
  std::string exchange;
};

/// What the broker said.
struct BrokerWord {
  enum class Kind : std::uint8_t {
    none,               ///< nothing more for now
    acked,              ///< `tag`, `multiple`
    nacked,             ///< `tag`, `multiple`
    returned,           ///< `event`
    channel_closed,     ///< `reply_code`; only the channel is gone
    connection_closed,  ///< `reply_code`
    blocked,            ///< short of a resource: it will not read for a while
    unblocked,
  };
  Kind kind = Kind::none;
  std::uint64_t tag = 0;
  bool multiple = false;
  int reply_code = 0;
  EventId event;
};

/// Thread safety: one thread at a time. Blocking: every function, except where it says otherwise; a
/// cut of the guard ends all but name resolution.
class Connection {
 public:
  /// Connects and logs in. Ownership: `guard` must outlive the connection.
  [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const ConnectionSettings& settings,
                                                                SocketGuard& guard);

  /// Opens the channel, in confirm mode, and makes sure that the exchange exists. After a failure
  /// that the broker decided the connection is still good, and `usable` says so.
  [[nodiscard]] Result<void> open_channel();
  [[nodiscard]] bool usable() const noexcept { return link_->usable(); }

  /// Writes one message. Errors: the connection is broken, and the message may have left.
  [[nodiscard]] Result<void> publish(const OutgoingMessage& message);

  /// The next thing the broker said. Sends heartbeats when they are due. Blocking: never.
  /// Errors: the connection is broken.
  [[nodiscard]] Result<BrokerWord> read();

  /// Tells whether there may be something to read. Blocking: never.
  [[nodiscard]] bool readable() const { return link_->readable(); }
  /// Gives the memory of frames back. Requires: no frame is in use.
  void release_buffers() { link_->release_buffers(); }
  /// Says goodbye to the broker and waits for its answer for up to `patience`.
  void say_goodbye(milliseconds patience) { link_->say_goodbye(patience); }

  [[nodiscard]] int descriptor() const { return link_->descriptor(); }
  [[nodiscard]] std::size_t frame_max() const { return link_->frame_max(); }

 private:
  Connection(std::string exchange, std::unique_ptr<Link> link);

  [[nodiscard]] Result<void> expect_exchange();
  [[nodiscard]] Result<BrokerWord> understand(const amqp_frame_t& frame);
  [[nodiscard]] BrokerWord understand_method(const amqp_method_t& method);
  [[nodiscard]] Result<BrokerWord> understand_content_header(const amqp_frame_t& frame);

  std::string exchange_;
  std::unique_ptr<Link> link_;
  bool return_announced_ = false;  ///< the next content header belongs to a returned message
};

}  // namespace postrider::amqp
