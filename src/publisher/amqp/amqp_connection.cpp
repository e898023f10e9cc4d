#include "publisher/amqp/amqp_connection.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

#include "base/assert.hpp"

namespace postrider::amqp {
namespace {

constexpr amqp_channel_t channel = 1;
constexpr int most_frame_bytes = 131072;
constexpr std::uint8_t persistent = 2;

// rabbitmq-c takes everything as non-const and changes nothing of it.
amqp_bytes_t bytes_of(std::string_view text) {
  return {text.size(),
          const_cast<char*>(text.data())};  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

std::string_view text_of(const amqp_bytes_t& bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

timeval timeval_of(milliseconds duration) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(duration);
  return {whole.count(), std::chrono::microseconds(duration - whole).count()};
}

amqp_table_entry_t text_entry(std::string_view name, std::string_view value) {
  amqp_table_entry_t entry{};
  entry.key = bytes_of(name);
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = bytes_of(value);
  return entry;
}

std::vector<amqp_table_entry_t> table_of(const Headers& headers) {
  std::vector<amqp_table_entry_t> entries;
  entries.reserve(headers.size());
  for (const auto& [name, value] : headers)
    entries.push_back(text_entry(name, value));
  return entries;
}

amqp_basic_properties_t properties_of(const OutgoingMessage& message,
                                      std::vector<amqp_table_entry_t>& table) {
  const Event& event = *message.event;
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_HEADERS_FLAG |
                      AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG |
                      AMQP_BASIC_TIMESTAMP_FLAG | AMQP_BASIC_TYPE_FLAG | AMQP_BASIC_APP_ID_FLAG;
  properties.content_type = bytes_of(event.content_type);
  properties.headers = {static_cast<int>(table.size()), table.data()};
  properties.delivery_mode = persistent;
  properties.message_id = bytes_of(message.message_id);
  properties.timestamp = static_cast<std::uint64_t>(
      std::chrono::floor<std::chrono::seconds>(event.created_at).time_since_epoch().count());
  properties.type = bytes_of(event.type);
  properties.app_id = bytes_of(app_id);
  return properties;
}

int reply_code_of(const amqp_method_t& close) {
  // connection.close and channel.close begin with the same field.
  if (close.id == AMQP_CONNECTION_CLOSE_METHOD) {
    return static_cast<amqp_connection_close_t*>(close.decoded)->reply_code;
  }
  return static_cast<amqp_channel_close_t*>(close.decoded)->reply_code;
}

}  // namespace

Connection::Connection(const ConnectionSettings& settings, SocketGuard& guard)
    : settings_(settings), guard_(guard), state_(amqp_new_connection()) {}

Connection::~Connection() {
  guard_.disarm();
  if (state_ != nullptr) amqp_destroy_connection(state_);
}

Result<std::unique_ptr<Connection>> Connection::open(const ConnectionSettings& settings,
                                                     SocketGuard& guard) {
  std::unique_ptr<Connection> connection(new Connection(settings, guard));
  if (connection->state_ == nullptr) {
    return native_error(ErrorSource::library, AMQP_STATUS_NO_MEMORY);
  }
  if (auto opened = connection->open_socket(); !opened) return std::move(opened).error();
  if (auto logged_in = connection->log_in(); !logged_in) return std::move(logged_in).error();
  return connection;
}

Result<void> Connection::open_socket() {
  const Address& address = settings_.address;
  amqp_socket_t* socket = address.tls ? amqp_ssl_socket_new(state_) : amqp_tcp_socket_new(state_);
  if (socket == nullptr) return broken(AMQP_STATUS_NO_MEMORY);
  if (address.tls) {
    auto ready = set_up_tls(socket, settings_.tls, address.host, tls_verdict_);
    if (!ready) return ready;
  }
  timeval patience = timeval_of(settings_.connect_timeout);
  amqp_set_handshake_timeout(state_, &patience);
  amqp_set_rpc_timeout(state_, &patience);
  const int status =
      amqp_socket_open_noblock(socket, address.host.c_str(), address.port, &patience);
  if (status != AMQP_STATUS_OK) return tls_error(status, tls_verdict_);
  guard_.arm(descriptor());
  return {};
}

Result<void> Connection::log_in() {
  amqp_table_entry_t blocked{};
  blocked.key = bytes_of("connection.blocked");
  blocked.value.kind = AMQP_FIELD_KIND_BOOLEAN;
  blocked.value.value.boolean = 1;
  amqp_table_entry_t client[2] = {text_entry("connection_name", app_id), {}};
  client[1].key = bytes_of("capabilities");
  client[1].value.kind = AMQP_FIELD_KIND_TABLE;
  client[1].value.value.table = {1, &blocked};
  const amqp_table_t properties{2, client};

  const Address& address = settings_.address;
  const auto heartbeat = std::chrono::ceil<std::chrono::seconds>(settings_.heartbeat).count();
  const auto reply = amqp_login_with_properties(
      state_, address.vhost.c_str(), AMQP_DEFAULT_MAX_CHANNELS, most_frame_bytes,
      static_cast<int>(heartbeat), &properties, AMQP_SASL_METHOD_PLAIN, address.user.c_str(),
      address.password.c_str());
  return answer_of(reply, ErrorSource::login);
}

Result<void> Connection::open_channel() {
  amqp_channel_open(state_, channel);
  if (auto opened = answer_of(amqp_get_rpc_reply(state_), ErrorSource::broker); !opened) {
    return opened;
  }
  amqp_confirm_select(state_, channel);
  if (auto confirming = answer_of(amqp_get_rpc_reply(state_), ErrorSource::broker); !confirming) {
    return confirming;
  }
  return expect_exchange();
}

Result<void> Connection::expect_exchange() {
  // The default exchange always exists, and may not even be asked for.
  if (settings_.exchange.empty()) return {};
  amqp_exchange_declare(state_, channel, bytes_of(settings_.exchange), bytes_of("direct"),
                        /*passive=*/1, /*durable=*/0, /*auto_delete=*/0, /*internal=*/0,
                        amqp_empty_table);
  return answer_of(amqp_get_rpc_reply(state_), ErrorSource::broker);
}

Result<void> Connection::answer_of(const amqp_rpc_reply_t& reply, ErrorSource source) {
  switch (reply.reply_type) {
    case AMQP_RESPONSE_NORMAL:
      return {};
    case AMQP_RESPONSE_LIBRARY_EXCEPTION:
      return broken(reply.library_error);
    case AMQP_RESPONSE_SERVER_EXCEPTION: {
      const int code = reply_code_of(reply.reply);
      const bool whole = reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD;
      confirm_close(whole ? 0 : channel, reply.reply.id);
      return native_error(source, code);
    }
    case AMQP_RESPONSE_NONE:
      break;
  }
  return broken(AMQP_STATUS_CONNECTION_CLOSED);
}

Error Connection::broken(int status) {
  usable_ = false;
  return native_error(ErrorSource::library, status);
}

Result<void> Connection::publish(const OutgoingMessage& message) {
  auto table = table_of(message.headers);
  const auto properties = properties_of(message, table);
  const int status = amqp_basic_publish(
      state_, channel, bytes_of(settings_.exchange), bytes_of(message.routing_key),
      /*mandatory=*/1, /*immediate=*/0, &properties, bytes_of(message.event->payload));
  if (status != AMQP_STATUS_OK) return broken(status);
  return {};
}

Result<BrokerWord> Connection::read() {
  for (;;) {
    amqp_frame_t frame;
    timeval at_once{0, 0};
    const int status = amqp_simple_wait_frame_noblock(state_, &frame, &at_once);
    if (status == AMQP_STATUS_TIMEOUT) return BrokerWord{};
    if (status != AMQP_STATUS_OK) return broken(status);
    auto word = understand(frame);
    if (!word || word->kind != BrokerWord::Kind::none) return word;
  }
}

Result<BrokerWord> Connection::understand(const amqp_frame_t& frame) {
  if (frame.frame_type == AMQP_FRAME_METHOD) return understand_method(frame.payload.method);
  if (frame.frame_type == AMQP_FRAME_HEADER) return understand_content_header(frame);
  return BrokerWord{};  // The body of a returned message, or a heartbeat.
}

BrokerWord Connection::understand_method(const amqp_method_t& method) {
  using Kind = BrokerWord::Kind;
  BrokerWord word;
  switch (method.id) {
    case AMQP_BASIC_ACK_METHOD: {
      const auto* ack = static_cast<amqp_basic_ack_t*>(method.decoded);
      return {Kind::acked, ack->delivery_tag, ack->multiple != 0, 0, {}};
    }
    case AMQP_BASIC_NACK_METHOD: {
      const auto* nack = static_cast<amqp_basic_nack_t*>(method.decoded);
      return {Kind::nacked, nack->delivery_tag, nack->multiple != 0, 0, {}};
    }
    case AMQP_BASIC_RETURN_METHOD:
      return_announced_ = true;
      return word;
    case AMQP_CHANNEL_CLOSE_METHOD:
    case AMQP_CONNECTION_CLOSE_METHOD: {
      const bool whole = method.id == AMQP_CONNECTION_CLOSE_METHOD;
      word.kind = whole ? Kind::connection_closed : Kind::channel_closed;
      word.reply_code = reply_code_of(method);
      confirm_close(whole ? 0 : channel, method.id);
      return word;
    }
    case AMQP_CONNECTION_BLOCKED_METHOD:
      word.kind = Kind::blocked;
      return word;
    case AMQP_CONNECTION_UNBLOCKED_METHOD:
      word.kind = Kind::unblocked;
      return word;
    default:
      return word;  // Nothing that concerns a publisher.
  }
}

Result<BrokerWord> Connection::understand_content_header(const amqp_frame_t& frame) {
  const auto* properties =
      static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded);
  if (!return_announced_ || frame.payload.properties.class_id != AMQP_BASIC_CLASS ||
      (properties->_flags & AMQP_BASIC_MESSAGE_ID_FLAG) == 0) {
    return broken(AMQP_STATUS_UNEXPECTED_STATE);
  }
  return_announced_ = false;
  const auto id = Uuid::parse(text_of(properties->message_id));
  if (!id) return broken(AMQP_STATUS_BAD_AMQP_DATA);
  BrokerWord word;
  word.kind = BrokerWord::Kind::returned;
  word.event = EventId(id.value());
  return word;
}

void Connection::confirm_close(amqp_channel_t closed, amqp_method_number_t method) {
  return_announced_ = false;
  // A broker that has closed may be gone already; it knows what it did without our answer.
  if (method == AMQP_CONNECTION_CLOSE_METHOD) {
    usable_ = false;
    amqp_connection_close_ok_t confirmation{};
    (void)amqp_send_method(state_, closed, AMQP_CONNECTION_CLOSE_OK_METHOD, &confirmation);
    return;
  }
  amqp_channel_close_ok_t confirmation{};
  const int status = amqp_send_method(state_, closed, AMQP_CHANNEL_CLOSE_OK_METHOD, &confirmation);
  if (status != AMQP_STATUS_OK) usable_ = false;
}

bool Connection::readable() const {
  if (amqp_frames_enqueued(state_) != 0 || amqp_data_in_buffer(state_) != 0) return true;
  pollfd socket{descriptor(), POLLIN, 0};
  return ::poll(&socket, 1, 0) != 0;
}

void Connection::release_buffers() {
  amqp_maybe_release_buffers(state_);
}

void Connection::say_goodbye(milliseconds patience) {
  timeval limit = timeval_of(std::max(patience, milliseconds(1)));
  amqp_set_rpc_timeout(state_, &limit);
  (void)amqp_connection_close(state_, AMQP_REPLY_SUCCESS);
  usable_ = false;
}

int Connection::descriptor() const {
  return amqp_get_sockfd(state_);
}

std::size_t Connection::frame_max() const {
  return static_cast<std::size_t>(amqp_get_frame_max(state_));
}

}  // namespace postrider::amqp
