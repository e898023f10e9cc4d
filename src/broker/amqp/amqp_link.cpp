#include "broker/amqp/amqp_link.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>

namespace postrider::amqp {
namespace {

constexpr int most_frame_bytes = 131072;
constexpr std::string_view connection_name = "postrider";

int reply_code_of(const amqp_method_t& close) {
  // connection.close and channel.close begin with the same field.
  if (close.id == AMQP_CONNECTION_CLOSE_METHOD) {
    return static_cast<amqp_connection_close_t*>(close.decoded)->reply_code;
  }
  return static_cast<amqp_channel_close_t*>(close.decoded)->reply_code;
}

}  // namespace

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

Link::Link(const LinkSettings& settings, SocketGuard& guard)
    : settings_(settings), guard_(guard), state_(amqp_new_connection()) {}

Link::~Link() {
  guard_.disarm();
  if (state_ != nullptr) amqp_destroy_connection(state_);
}

Result<std::unique_ptr<Link>> Link::open(const LinkSettings& settings, SocketGuard& guard) {
  std::unique_ptr<Link> link(new Link(settings, guard));
  if (link->state_ == nullptr) return native_error(ErrorSource::library, AMQP_STATUS_NO_MEMORY);
  if (auto opened = link->open_socket(); !opened) return std::move(opened).error();
  if (auto logged_in = link->log_in(); !logged_in) return std::move(logged_in).error();
  return link;
}

Result<void> Link::open_socket() {
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

Result<void> Link::log_in() {
  amqp_table_entry_t can[2] = {{}, {}};
  can[0].key = bytes_of("connection.blocked");
  can[1].key = bytes_of("consumer_cancel_notify");
  for (auto& ability : can) {
    ability.value.kind = AMQP_FIELD_KIND_BOOLEAN;
    ability.value.value.boolean = 1;
  }
  amqp_table_entry_t client[2] = {text_entry("connection_name", connection_name), {}};
  client[1].key = bytes_of("capabilities");
  client[1].value.kind = AMQP_FIELD_KIND_TABLE;
  client[1].value.value.table = {2, can};
  const amqp_table_t properties{2, client};

  const Address& address = settings_.address;
  const auto heartbeat = std::chrono::ceil<std::chrono::seconds>(settings_.heartbeat).count();
  const auto reply = amqp_login_with_properties(
      state_, address.vhost.c_str(), AMQP_DEFAULT_MAX_CHANNELS, most_frame_bytes,
      static_cast<int>(heartbeat), &properties, AMQP_SASL_METHOD_PLAIN, address.user.c_str(),
      address.password.c_str());
  return answer_of(reply, ErrorSource::login);
}

Result<void> Link::open_channel() {
  amqp_channel_open(state_, channel);
  return last_answer(ErrorSource::broker);
}

Result<void> Link::last_answer(ErrorSource source) {
  return answer_of(amqp_get_rpc_reply(state_), source);
}

Result<void> Link::answer_of(const amqp_rpc_reply_t& reply, ErrorSource source) {
  switch (reply.reply_type) {
    case AMQP_RESPONSE_NORMAL:
      return {};
    case AMQP_RESPONSE_LIBRARY_EXCEPTION:
      return broken(reply.library_error);
    case AMQP_RESPONSE_SERVER_EXCEPTION:
      if (const auto closure = closure_of(reply.reply)) {
        return native_error(source, closure->reply_code);
      }
      break;
    case AMQP_RESPONSE_NONE:
      break;
  }
  return broken(AMQP_STATUS_CONNECTION_CLOSED);
}

Result<std::optional<amqp_frame_t>> Link::next_frame() {
  amqp_frame_t frame;
  timeval at_once{0, 0};
  const int status = amqp_simple_wait_frame_noblock(state_, &frame, &at_once);
  if (status == AMQP_STATUS_TIMEOUT) return std::optional<amqp_frame_t>();
  if (status != AMQP_STATUS_OK) return broken(status);
  return std::optional<amqp_frame_t>(frame);
}

std::optional<Closure> Link::closure_of(const amqp_method_t& method) {
  const bool whole = method.id == AMQP_CONNECTION_CLOSE_METHOD;
  if (!whole && method.id != AMQP_CHANNEL_CLOSE_METHOD) return std::nullopt;
  const Closure closure{whole, reply_code_of(method)};
  confirm_close(whole ? 0 : channel, method.id);
  return closure;
}

void Link::confirm_close(amqp_channel_t closed, amqp_method_number_t method) {
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

Error Link::broken(int status) {
  usable_ = false;
  return native_error(ErrorSource::library, status);
}

bool Link::readable() const {
  if (amqp_frames_enqueued(state_) != 0 || amqp_data_in_buffer(state_) != 0) return true;
  pollfd socket{descriptor(), POLLIN, 0};
  return ::poll(&socket, 1, 0) != 0;
}

void Link::release_buffers() {
  amqp_maybe_release_buffers(state_);
}

void Link::say_goodbye(milliseconds patience) {
  timeval limit = timeval_of(std::max(patience, milliseconds(1)));
  amqp_set_rpc_timeout(state_, &limit);
  (void)amqp_connection_close(state_, AMQP_REPLY_SUCCESS);
  usable_ = false;
}

int Link::descriptor() const {
  return amqp_get_sockfd(state_);
}

std::size_t Link::frame_max() const {
  return static_cast<std::size_t>(amqp_get_frame_max(state_));
}

}  // namespace postrider::amqp
