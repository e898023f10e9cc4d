#pragma once
/// \file
/// One connection to RabbitMQ with one channel: connecting, login, frames, goodbye. What is said on
/// the channel is the business of whoever owns the link.

#include <sys/time.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/result.hpp>

#include "broker/amqp/amqp_client.hpp"
#include "broker/amqp/amqp_errors.hpp"
#include "broker/amqp/amqp_tls.hpp"
#include "broker/amqp/amqp_url.hpp"
#include "broker/amqp/socket_guard.hpp"

namespace postrider::amqp {

/// The only channel of a link.
inline constexpr amqp_channel_t channel = 1;

struct LinkSettings {
  Address address;
  TlsFiles tls;
  milliseconds heartbeat{0};
  milliseconds connect_timeout{0};  ///< of each step: connecting, login, opening the channel
};

/// That the broker closed the channel, or the whole connection.
struct Closure {
  bool whole = false;
  int reply_code = 0;
};

// rabbitmq-c takes everything as non-const and changes nothing of it.
[[nodiscard]] amqp_bytes_t bytes_of(std::string_view text);
[[nodiscard]] std::string_view text_of(const amqp_bytes_t& bytes);
[[nodiscard]] timeval timeval_of(milliseconds duration);
[[nodiscard]] amqp_table_entry_t text_entry(std::string_view name, std::string_view value);

/// Thread safety: one thread at a time. Blocking: every function, except where it says otherwise; a
/// cut of the guard ends all but name resolution.
class Link {
 public:
  /// Connects and logs in. Ownership: `guard` must outlive the link.
  [[nodiscard]] static Result<std::unique_ptr<Link>> open(const LinkSettings& settings,
                                                          SocketGuard& guard);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// After a failure that the broker decided the connection is still good, and `usable` says so.
  [[nodiscard]] Result<void> open_channel();
  [[nodiscard]] bool usable() const noexcept { return usable_; }

  /// The result of a call that waited for an answer.
  [[nodiscard]] Result<void> answer_of(const amqp_rpc_reply_t& reply, ErrorSource source);
  /// The same of the last call that returned its answer instead of a reply.
  [[nodiscard]] Result<void> last_answer(ErrorSource source);

  /// The next frame, as far as one is there. Sends heartbeats when they are due. Blocking: never.
  /// Errors: the connection is broken.
  [[nodiscard]] Result<std::optional<amqp_frame_t>> next_frame();
  /// What `method` closes; its confirmation is sent.
  [[nodiscard]] std::optional<Closure> closure_of(const amqp_method_t& method);
  /// Notes that the connection is broken, and says so.
  [[nodiscard]] Error broken(int status);

  /// Tells whether there may be something to read. Blocking: never.
  [[nodiscard]] bool readable() const;
  /// Gives the memory of frames back. Requires: no frame is in use.
  void release_buffers();
  /// Says goodbye to the broker and waits for its answer for up to `patience`.
  void say_goodbye(milliseconds patience);

  [[nodiscard]] amqp_connection_state_t state() const noexcept { return state_; }
  [[nodiscard]] int descriptor() const;
  [[nodiscard]] std::size_t frame_max() const;

 private:
  Link(const LinkSettings& settings, SocketGuard& guard);

  [[nodiscard]] Result<void> open_socket();
  [[nodiscard]] Result<void> log_in();
  void confirm_close(amqp_channel_t closed, amqp_method_number_t method);

  LinkSettings settings_;
  SocketGuard& guard_;
  TlsVerdict tls_verdict_;
  amqp_connection_state_t state_;
  bool usable_ = true;
};

}  // namespace postrider::amqp
