#include "publisher/amqp/amqp_connection.hpp"

#include <chrono>
#include <utility>
#include <vector>

namespace postrider::amqp {
namespace {

constexpr std::uint8_t persistent = 2;

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

}  // namespace

Connection::Connection(std::string exchange, std::unique_ptr<Link> link)
    : exchange_(std::move(exchange)), link_(std::move(link)) {}

Result<std::unique_ptr<Connection>> Connection::open(const ConnectionSettings& settings,
                                                     SocketGuard& guard) {
  auto link = Link::open(settings.link, guard);
  if (!link) return std::move(link).error();
  return std::unique_ptr<Connection>(new Connection(settings.exchange, std::move(link).value()));
}

Result<void> Connection::open_channel() {
  return_announced_ = false;
  if (auto opened = link_->open_channel(); !opened) return opened;
  amqp_confirm_select(link_->state(), channel);
  if (auto confirming = link_->last_answer(ErrorSource::broker); !confirming) return confirming;
  return expect_exchange();
}

Result<void> Connection::expect_exchange() {
  // The default exchange always exists, and may not even be asked for.
  if (exchange_.empty()) return {};
  amqp_exchange_declare(link_->state(), channel, bytes_of(exchange_), bytes_of("direct"),
                        /*passive=*/1, /*durable=*/0, /*auto_delete=*/0, /*internal=*/0,
                        amqp_empty_table);
  return link_->last_answer(ErrorSource::broker);
}

Result<void> Connection::publish(const OutgoingMessage& message) {
  auto table = table_of(message.headers);
  const auto properties = properties_of(message, table);
  const int status = amqp_basic_publish(
      link_->state(), channel, bytes_of(exchange_), bytes_of(message.routing_key),
      /*mandatory=*/1, /*immediate=*/0, &properties, bytes_of(message.event->payload));
  if (status != AMQP_STATUS_OK) return link_->broken(status);
  return {};
}

Result<BrokerWord> Connection::read() {
  for (;;) {
    const auto frame = link_->next_frame();
    if (!frame) return frame.error();
    if (!*frame) return BrokerWord{};
    auto word = understand(**frame);
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
  if (const auto closure = link_->closure_of(method)) {
    return_announced_ = false;
    word.kind = closure->whole ? Kind::connection_closed : Kind::channel_closed;
    word.reply_code = closure->reply_code;
    return word;
  }
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
    return link_->broken(AMQP_STATUS_UNEXPECTED_STATE);
  }
  return_announced_ = false;
  const auto id = Uuid::parse(text_of(properties->message_id));
  if (!id) return link_->broken(AMQP_STATUS_BAD_AMQP_DATA);
  BrokerWord word;
  word.kind = BrokerWord::Kind::returned;
  word.event = EventId(id.value());
  return word;
}

}  // namespace postrider::amqp
