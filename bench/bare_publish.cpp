#if __has_include(<rabbitmq-c/amqp.h>)
#include <rabbitmq-c/amqp.h>
#include <rabbitmq-c/tcp_socket.h>
#else  // rabbitmq-c before 0.12
#include <amqp.h>
#include <amqp_tcp_socket.h>
#endif

#include <array>
#include <chrono>
#include <deque>
#include <stdexcept>
#include <string>

#include "bench/bare.hpp"

namespace postrider::bench {
namespace {

constexpr amqp_channel_t channel = 1;
constexpr std::size_t payload_bytes = 300;

void expect(const amqp_rpc_reply_t& reply, const char* doing) {
  if (reply.reply_type != AMQP_RESPONSE_NORMAL) {
    throw std::runtime_error(std::string("RabbitMQ refuses: ") + doing);
  }
}

void expect(int status, const char* doing) {
  if (status != AMQP_STATUS_OK) {
    throw std::runtime_error(std::string(doing) + ": " + amqp_error_string2(status));
  }
}

class Session {
 public:
  explicit Session(int port) : state_(amqp_new_connection()) {
    expect(amqp_socket_open(amqp_tcp_socket_new(state_), "127.0.0.1", port), "connect");
    expect(amqp_login(state_, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest"),
           "login");
    amqp_channel_open(state_, channel);
    expect(amqp_get_rpc_reply(state_), "open a channel");
    amqp_confirm_select(state_, channel);
    expect(amqp_get_rpc_reply(state_), "confirm.select");
  }
  ~Session() { amqp_destroy_connection(state_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void publish(const std::string& queue, std::uint64_t number) {
    const std::string seq = std::to_string(number);
    const std::string aggregate = std::to_string(number % 50'000);
    std::string id = "0190a5b2-7c3d-7e4f-8a6b-000000000000";
    id.replace(id.size() - seq.size(), seq.size(), seq);
    std::array<amqp_table_entry_t, 3> headers = {text_entry("postrider-aggregate-id", aggregate),
                                                 text_entry("postrider-aggregate-type", "account"),
                                                 text_entry("postrider-seq", seq)};
    amqp_basic_properties_t properties{};
    properties._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_HEADERS_FLAG |
                        AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG |
                        AMQP_BASIC_TIMESTAMP_FLAG | AMQP_BASIC_TYPE_FLAG | AMQP_BASIC_APP_ID_FLAG;
    properties.content_type = amqp_cstring_bytes("application/json");
    properties.headers = {static_cast<int>(headers.size()), headers.data()};
    properties.delivery_mode = 2;
    properties.message_id = bytes_of(id);
    properties.timestamp = 1'700'000'000;
    properties.type = amqp_cstring_bytes("account.changed");
    properties.app_id = amqp_cstring_bytes("postrider");
    expect(amqp_basic_publish(state_, channel, amqp_empty_bytes, bytes_of(queue), /*mandatory=*/1,
                              /*immediate=*/0, &properties, bytes_of(payload_)),
           "publish");
    open_.push_back(true);
    ++unconfirmed_;
  }

  [[nodiscard]] std::uint64_t unconfirmed() const { return unconfirmed_; }

  /// Takes one frame, if one comes within `wait`; false when none does.
  bool read_frame(timeval wait) {
    amqp_frame_t frame;
    const int status = amqp_simple_wait_frame_noblock(state_, &frame, &wait);
    if (status == AMQP_STATUS_TIMEOUT) return false;
    expect(status, "wait for a confirm");
    if (frame.frame_type != AMQP_FRAME_METHOD) return true;
    if (frame.payload.method.id != AMQP_BASIC_ACK_METHOD) {
      throw std::runtime_error("RabbitMQ does not confirm");
    }
    const auto* const ack = static_cast<amqp_basic_ack_t*>(frame.payload.method.decoded);
    confirm(ack->delivery_tag, ack->multiple != 0);
    amqp_maybe_release_buffers(state_);
    return true;
  }

 private:
  static amqp_bytes_t bytes_of(const std::string& text) {
    return {text.size(), const_cast<char*>(text.data())};  // NOLINT: rabbitmq-c changes nothing
  }
  static amqp_table_entry_t text_entry(const char* name, const std::string& value) {
    amqp_table_entry_t entry{};
    entry.key = amqp_cstring_bytes(name);
    entry.value.kind = AMQP_FIELD_KIND_UTF8;
    entry.value.value.bytes = bytes_of(value);
    return entry;
  }

  void confirm(std::uint64_t tag, bool multiple) {
    for (auto number = multiple ? first_ : tag; number <= tag; ++number) {
      if (number < first_ || !open_.at(number - first_)) continue;
      open_[number - first_] = false;
      --unconfirmed_;
    }
    while (!open_.empty() && !open_.front()) {
      open_.pop_front();
      ++first_;
    }
  }

  amqp_connection_state_t state_;
  std::string payload_ = std::string(payload_bytes, 'x');
  std::deque<bool> open_;  // open_[i]: message first_ + i is not confirmed
  std::uint64_t first_ = 1;
  std::uint64_t unconfirmed_ = 0;
};

}  // namespace

double publish(int port, const std::string& queue, std::int64_t messages, std::int64_t window) {
  const auto begun = std::chrono::steady_clock::now();
  const timeval patience{30, 0};
  Session session(port);
  for (std::int64_t number = 1; number <= messages; ++number) {
    while (session.unconfirmed() >= static_cast<std::uint64_t>(window)) {
      if (!session.read_frame(patience)) throw std::runtime_error("RabbitMQ does not answer");
    }
    session.publish(queue, static_cast<std::uint64_t>(number));
  }
  while (session.unconfirmed() > 0) {
    if (!session.read_frame(patience)) throw std::runtime_error("RabbitMQ does not answer");
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace postrider::bench
