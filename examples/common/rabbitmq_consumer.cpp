#include "common/rabbitmq_consumer.hpp"

#include <charconv>
#include <iostream>
#include <memory>
#include <thread>

#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>

namespace examples {
namespace {

using postrider::Disposition;
using postrider::Event;
using std::chrono::milliseconds;

constexpr amqp_channel_t channel = 1;
constexpr int heartbeat_s = 10;
constexpr int most_frame_bytes = 131'072;
constexpr timeval connect_timeout{5, 0};
constexpr milliseconds look_around{100};  // how often `stopped` is asked
constexpr std::string_view own_headers = "postrider-";

amqp_bytes_t bytes_of(const std::string& text) {
  return {text.size(), const_cast<char*>(text.data())};  // NOLINT: rabbitmq-c changes nothing
}

std::string text_of(const amqp_bytes_t& bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

/// A connection that is lost, or cannot be had.
class ConnectionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Connection {
 public:
  explicit Connection(const RabbitmqConsumerOptions& options) : state_(amqp_new_connection()) {
    log_in(options.url);
    amqp_channel_open(state_.get(), channel);
    expect("open a channel");
    declare(options);
    amqp_basic_qos(state_.get(), channel, 0, static_cast<std::uint16_t>(options.prefetch), 0);
    expect("set the prefetch");
    amqp_basic_consume(state_.get(), channel, bytes_of(options.queue), amqp_empty_bytes, 0, 0, 0,
                       amqp_empty_table);
    expect("consume");
  }

  /// The next message; false when none came within `patience`.
  bool next(amqp_envelope_t& envelope, milliseconds patience) {
    amqp_maybe_release_buffers(state_.get());
    const timeval timeout{0, std::chrono::microseconds(patience).count()};
    const auto reply = amqp_consume_message(state_.get(), &envelope, &timeout, 0);
    if (reply.reply_type == AMQP_RESPONSE_NORMAL) return true;
    const bool nothing_came = reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION &&
                              reply.library_error == AMQP_STATUS_TIMEOUT;
    if (!nothing_came) throw ConnectionError("the connection is lost");
    return false;
  }

  void acknowledge(std::uint64_t tag) {
    if (amqp_basic_ack(state_.get(), channel, tag, 0) != AMQP_STATUS_OK) {
      throw ConnectionError("the connection is lost");
    }
  }
  void reject(std::uint64_t tag) {
    if (amqp_basic_reject(state_.get(), channel, tag, 0) != AMQP_STATUS_OK) {
      throw ConnectionError("the connection is lost");
    }
  }

  /// In good order: what is not acknowledged goes back at once.
  void close() { amqp_connection_close(state_.get(), AMQP_REPLY_SUCCESS); }

 private:
  void log_in(std::string url) {
    amqp_connection_info where{};
    amqp_default_connection_info(&where);
    if (amqp_parse_url(url.data(), &where) != AMQP_STATUS_OK) {
      throw std::runtime_error("the URL of the broker cannot be read");
    }
    auto* const socket = amqp_tcp_socket_new(state_.get());
    if (amqp_socket_open_noblock(socket, where.host, where.port, &connect_timeout) !=
        AMQP_STATUS_OK) {
      throw ConnectionError("no broker answers");
    }
    const auto reply = amqp_login(state_.get(), where.vhost, 1, most_frame_bytes, heartbeat_s,
                                  AMQP_SASL_METHOD_PLAIN, where.user, where.password);
    if (reply.reply_type != AMQP_RESPONSE_NORMAL) throw ConnectionError("the login failed");
  }

  void declare(const RabbitmqConsumerOptions& options) {
    amqp_exchange_declare(state_.get(), channel, bytes_of(options.exchange),
                          amqp_cstring_bytes("topic"), 0, 1, 0, 0, amqp_empty_table);
    expect("declare the exchange");
    amqp_table_entry_t single{};
    single.key = amqp_cstring_bytes("x-single-active-consumer");
    single.value.kind = AMQP_FIELD_KIND_BOOLEAN;
    single.value.value.boolean = 1;
    const amqp_table_t arguments{1, &single};
    amqp_queue_declare(state_.get(), channel, bytes_of(options.queue), 0, 1, 0, 0, arguments);
    expect("declare the queue");
    amqp_queue_bind(state_.get(), channel, bytes_of(options.queue), bytes_of(options.exchange),
                    amqp_cstring_bytes("#"), amqp_empty_table);
    expect("bind the queue");
  }

  void expect(const std::string& what) {
    if (amqp_get_rpc_reply(state_.get()).reply_type != AMQP_RESPONSE_NORMAL) {
      throw ConnectionError("the broker does not let us " + what);
    }
  }

  struct Destroy {
    void operator()(amqp_connection_state_t_* state) const { amqp_destroy_connection(state); }
  };
  std::unique_ptr<amqp_connection_state_t_, Destroy> state_;
};

std::string header_of(const amqp_basic_properties_t& properties, std::string_view name) {
  for (int i = 0; i < properties.headers.num_entries; ++i) {
    const auto& entry = properties.headers.entries[i];
    if (text_of(entry.key) == name && entry.value.kind == AMQP_FIELD_KIND_UTF8) {
      return text_of(entry.value.value.bytes);
    }
  }
  return {};
}

/// The event that the relay sent. See docs/brokers/rabbitmq.md for what travels where.
postrider::Result<Event> event_of(const amqp_message_t& message) {
  const auto& properties = message.properties;
  const auto id = postrider::Uuid::parse(text_of(properties.message_id));
  if (!id) return id.error();
  Event event;
  event.id = postrider::EventId(id.value());
  event.type = text_of(properties.type);
  event.content_type = text_of(properties.content_type);
  event.payload = text_of(message.body);
  const auto seq = header_of(properties, "postrider-seq");
  std::int64_t number = 0;
  std::from_chars(seq.data(), seq.data() + seq.size(), number);
  event.seq = postrider::Seq(number);
  const auto aggregate = header_of(properties, "postrider-aggregate-type");
  if (!aggregate.empty()) {
    event.aggregate =
        postrider::Aggregate{aggregate, header_of(properties, "postrider-aggregate-id")};
  }
  for (int i = 0; i < properties.headers.num_entries; ++i) {
    const auto name = text_of(properties.headers.entries[i].key);
    if (!name.starts_with(own_headers)) event.headers[name] = header_of(properties, name);
  }
  return event;
}

// [acknowledge]
/// Acknowledges after the commit, never before.
void handle(Connection& connection, const amqp_envelope_t& envelope, const EventHandler& handler) {
  const auto event = event_of(envelope.message);
  const auto handled = event ? handler(event.value()) : event.error();
  if (handled) return connection.acknowledge(envelope.delivery_tag);
  std::cerr << "consumer: " << describe(handled.error()) << std::endl;
  if (handled.error().disposition != Disposition::reject) {
    throw ConnectionError("a message has to come again");
  }
  connection.reject(envelope.delivery_tag);
}
// [acknowledge]

void consume_until(const std::function<bool()>& stopped, Connection& connection,
                   const EventHandler& handler) {
  while (!stopped()) {
    amqp_envelope_t envelope{};
    if (!connection.next(envelope, look_around)) continue;
    const std::unique_ptr<amqp_envelope_t, decltype(&amqp_destroy_envelope)> owner(
        &envelope, &amqp_destroy_envelope);
    handle(connection, envelope, handler);
  }
  connection.close();
}

void wait(milliseconds patience, const std::function<bool()>& stopped) {
  const auto until = postrider::Deadline::after(patience);
  while (!until.passed() && !stopped())
    std::this_thread::sleep_for(std::min(until.remaining(), look_around));
}

}  // namespace

void consume(const RabbitmqConsumerOptions& options, const EventHandler& handler,
             const std::function<bool()>& stopped) {
  while (!stopped()) {
    try {
      Connection connection(options);
      std::cerr << "consumer: connected" << std::endl;
      consume_until(stopped, connection, handler);
    } catch (const ConnectionError& error) {
      std::cerr << "consumer: " << error.what() << "; connecting again" << std::endl;
      wait(options.reconnect_after, stopped);
    }
  }
}

}  // namespace examples
