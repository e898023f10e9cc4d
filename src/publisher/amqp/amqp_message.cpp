#include "publisher/amqp/amqp_message.hpp"

#include <fmt/format.h>

#include "publisher/common/message_limits.hpp"
#include "publisher/common/transport_headers.hpp"

namespace postrider::amqp {
namespace {

constexpr std::size_t most_short_string = 255;

// frame header and end mark; class, weight, body size, flags; delivery mode and timestamp
constexpr std::size_t fixed_bytes = (7 + 1) + (2 + 2 + 8 + 2) + (1 + 8);

std::size_t short_string_bytes(std::string_view text) {
  return 1 + text.size();
}

std::size_t table_bytes(const Headers& headers) {
  std::size_t bytes = 4;
  for (const auto& [name, value] : headers)
    bytes += short_string_bytes(name) + 1 + 4 + value.size();
  return bytes;
}

Result<void> check_short_strings(const OutgoingMessage& message) {
  if (auto fits =
          publisher::check_bytes("The routing key", message.routing_key.size(), most_short_string);
      !fits) {
    return fits;
  }
  if (auto fits =
          publisher::check_bytes("The event's type", message.event->type.size(), most_short_string);
      !fits) {
    return fits;
  }
  if (auto fits = publisher::check_bytes("The content type", message.event->content_type.size(),
                                         most_short_string);
      !fits) {
    return fits;
  }
  for (const auto& [name, value] : message.headers) {
    if (auto fits = publisher::check_bytes("A header's name", name.size(), most_short_string);
        !fits) {
      return fits;
    }
  }
  return {};
}

Result<void> check(const OutgoingMessage& message, std::size_t frame_max) {
  if (auto fits = publisher::check_bytes("The payload", message.event->payload.size(),
                                         EventLimits::most_payload_bytes);
      !fits) {
    return fits;
  }
  if (auto fits = check_short_strings(message); !fits) return fits;
  return publisher::check_bytes("The frame of headers and properties", header_frame_bytes(message),
                                frame_max);
}

}  // namespace

std::size_t header_frame_bytes(const OutgoingMessage& message) {
  return fixed_bytes + short_string_bytes(message.event->content_type) +
         table_bytes(message.headers) + short_string_bytes(message.message_id) +
         short_string_bytes(message.event->type) + short_string_bytes(app_id);
}

Result<OutgoingMessage> prepare(const Message& message, const EventTemplate& routing_key,
                                std::size_t frame_max, Instant now) {
  auto key = routing_key.render(*message.event);
  if (!key) return std::move(key).error();
  OutgoingMessage outgoing{message.attempt,
                           message.event,
                           message.event->id.value().to_string(),
                           std::move(key).value(),
                           publisher::transport_headers(*message.event),
                           now + message.timeout};
  if (auto fits = check(outgoing, frame_max); !fits) return std::move(fits).error();
  return outgoing;
}

}  // namespace postrider::amqp
