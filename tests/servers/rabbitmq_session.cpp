#include "servers/rabbitmq_session.hpp"

#include <algorithm>
#include <stdexcept>

#if __has_include(<rabbitmq-c/amqp.h>)
#include <rabbitmq-c/amqp.h>
#include <rabbitmq-c/framing.h>
#include <rabbitmq-c/tcp_socket.h>
#else
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#endif

namespace postrider::testing {
namespace {

constexpr amqp_channel_t channel = 1;

amqp_connection_state_t state_of(void* state) {
  return static_cast<amqp_connection_state_t>(state);
}

amqp_bytes_t bytes_of(const std::string& text) {
  return {text.size(), const_cast<char*>(text.data())};  // NOLINT: nothing is changed
}

std::string text_of(const amqp_bytes_t& bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

std::vector<amqp_table_entry_t> table_of(const QueueArguments& arguments) {
  std::vector<amqp_table_entry_t> entries;
  for (const auto& [name, value] : arguments) {
    amqp_table_entry_t entry{};
    entry.key = bytes_of(name);
    const bool is_number = !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
      return c >= '0' && c <= '9';
    });
    if (is_number) {
      entry.value.kind = AMQP_FIELD_KIND_I64;
      entry.value.value.i64 = std::stoll(value);
    } else {
      entry.value.kind = AMQP_FIELD_KIND_UTF8;
      entry.value.value.bytes = bytes_of(value);
    }
    entries.push_back(entry);
  }
  return entries;
}

StoredMessage stored(const amqp_basic_get_ok_t& got, const amqp_message_t& message) {
  const auto& properties = message.properties;
  StoredMessage result;
  result.message_id = text_of(properties.message_id);
  result.type = text_of(properties.type);
  result.content_type = text_of(properties.content_type);
  result.app_id = text_of(properties.app_id);
  result.routing_key = text_of(got.routing_key);
  result.body = text_of(message.body);
  result.timestamp_s = properties.timestamp;
  result.delivery_mode = properties.delivery_mode;
  for (int i = 0; i < properties.headers.num_entries; ++i) {
    const auto& entry = properties.headers.entries[i];
    if (entry.value.kind != AMQP_FIELD_KIND_UTF8) continue;
    result.headers[text_of(entry.key)] = text_of(entry.value.value.bytes);
  }
  return result;
}

}  // namespace

RabbitmqSession::RabbitmqSession(int port, const std::string& vhost)
    : state_(amqp_new_connection()) {
  const auto state = state_of(state_);
  amqp_socket_t* socket = amqp_tcp_socket_new(state);
  if (amqp_socket_open(socket, "127.0.0.1", port) != AMQP_STATUS_OK) {
    amqp_destroy_connection(state);
    throw std::runtime_error("RabbitMQ cannot be reached");
  }
  const auto login =
      amqp_login(state, vhost.c_str(), 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest");
  if (login.reply_type != AMQP_RESPONSE_NORMAL) {
    amqp_destroy_connection(state);
    throw std::runtime_error("RabbitMQ refused the login");
  }
  amqp_channel_open(state, channel);
  expect_success("open a channel");
}

RabbitmqSession::~RabbitmqSession() {
  amqp_connection_close(state_of(state_), AMQP_REPLY_SUCCESS);
  amqp_destroy_connection(state_of(state_));
}

void RabbitmqSession::expect_success(const std::string& what) {
  const auto reply = amqp_get_rpc_reply(state_of(state_));
  if (reply.reply_type != AMQP_RESPONSE_NORMAL)
    throw std::runtime_error("RabbitMQ did not " + what);
}

void RabbitmqSession::declare_exchange(const std::string& name, const std::string& type) {
  amqp_exchange_declare(state_of(state_), channel, bytes_of(name), bytes_of(type), 0, 1, 0, 0,
                        amqp_empty_table);
  expect_success("declare the exchange " + name);
}

void RabbitmqSession::delete_exchange(const std::string& name) {
  amqp_exchange_delete(state_of(state_), channel, bytes_of(name), 0);
  expect_success("delete the exchange " + name);
}

void RabbitmqSession::declare_queue(const std::string& name, const QueueArguments& arguments) {
  auto entries = table_of(arguments);
  const amqp_table_t table{static_cast<int>(entries.size()), entries.data()};
  amqp_queue_declare(state_of(state_), channel, bytes_of(name), 0, 1, 0, 0, table);
  expect_success("declare the queue " + name);
}

void RabbitmqSession::delete_queue(const std::string& name) {
  amqp_queue_delete(state_of(state_), channel, bytes_of(name), 0, 0);
  expect_success("delete the queue " + name);
}

void RabbitmqSession::bind(const std::string& queue, const std::string& exchange,
                           const std::string& routing_key) {
  amqp_queue_bind(state_of(state_), channel, bytes_of(queue), bytes_of(exchange),
                  bytes_of(routing_key), amqp_empty_table);
  expect_success("bind " + queue);
}

void RabbitmqSession::unbind(const std::string& queue, const std::string& exchange,
                             const std::string& routing_key) {
  amqp_queue_unbind(state_of(state_), channel, bytes_of(queue), bytes_of(exchange),
                    bytes_of(routing_key), amqp_empty_table);
  expect_success("unbind " + queue);
}

void RabbitmqSession::send(const std::string& queue, const std::string& type,
                           const std::string& body) {
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG;
  properties.type = bytes_of(type);
  properties.delivery_mode = 2;
  const int status = amqp_basic_publish(state_of(state_), channel, amqp_empty_bytes,
                                        bytes_of(queue), 0, 0, &properties, bytes_of(body));
  if (status != AMQP_STATUS_OK) throw std::runtime_error("RabbitMQ did not take a message");
}

std::size_t RabbitmqSession::ready(const std::string& queue) {
  const auto* declared = amqp_queue_declare(state_of(state_), channel, bytes_of(queue),
                                            /*passive=*/1, 1, 0, 0, amqp_empty_table);
  expect_success("tell of the queue " + queue);
  return declared->message_count;
}

std::vector<StoredMessage> RabbitmqSession::take_all(const std::string& queue) {
  const auto state = state_of(state_);
  std::vector<StoredMessage> all;
  for (;;) {
    const auto reply = amqp_basic_get(state, channel, bytes_of(queue), 1);
    expect_success("give a message of " + queue);
    if (reply.reply.id != AMQP_BASIC_GET_OK_METHOD) return all;
    const auto* got = static_cast<amqp_basic_get_ok_t*>(reply.reply.decoded);
    amqp_message_t message;
    if (amqp_read_message(state, channel, &message, 0).reply_type != AMQP_RESPONSE_NORMAL) {
      throw std::runtime_error("RabbitMQ broke off a message of " + queue);
    }
    all.push_back(stored(*got, message));
    amqp_destroy_message(&message);
    amqp_maybe_release_buffers(state);
  }
}

}  // namespace postrider::testing
