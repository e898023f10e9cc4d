#pragma once
/// \file
/// A message in the form in which it goes over the wire.
///
/// Properties: message_id = the event's id, type = its type, content_type, timestamp = created_at
/// in seconds, app_id = "postrider", delivery_mode = 2 (persistent). Headers: the event's own and
/// the reserved ones of transport_headers.hpp, all as long strings.

#include <cstddef>
#include <memory>
#include <string>

#include <postrider/publisher.hpp>

#include "values/event_template.hpp"

namespace postrider::amqp {

inline constexpr std::string_view app_id = "postrider";

struct OutgoingMessage {
  AttemptId attempt;
  std::shared_ptr<const Event> event;
  std::string message_id;
  std::string routing_key;
  Headers headers;
  Instant expires_at;
};

/// Errors: with `reject` when a field does not fit into AMQP's types, or the content header not
/// into one frame of `frame_max` bytes. RabbitMQ would answer either by closing the connection.
[[nodiscard]] Result<OutgoingMessage> prepare(const Message& message,
                                              const EventTemplate& routing_key,
                                              std::size_t frame_max, Instant now);

/// Bytes of the content header frame of `message`, which cannot be split.
[[nodiscard]] std::size_t header_frame_bytes(const OutgoingMessage& message);

}  // namespace postrider::amqp
