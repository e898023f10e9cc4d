#pragma once
/// \file
/// From a message of a queue to a ticket: the other side of `core::task_message`.
///
///   property type   the job's name
///   body            {"outbox_event_id": "<uuid>", "outbox_delivery_id": "<uuid>",
///                    "outbox_dispatch_id": "<uuid>", "outbox_last_attempt": true}
///
/// Further members are passed over, so that a newer relay may add some. The last-attempt flag is
/// for workers of others: ours has it from the database.

#include <cstddef>
#include <string>
#include <string_view>

#include <postrider/result.hpp>
#include <postrider/task_source.hpp>

namespace postrider::amqp {

/// Ours have about 220 bytes; nothing larger is even kept.
inline constexpr std::size_t most_task_bytes = 4096;

/// Errors: with `reject`, why it is no task: one of few sentences that hold nothing of the message.
[[nodiscard]] Result<Ticket> read_task(std::string_view type, std::string_view body);

/// That a body was larger than `most_task_bytes`.
[[nodiscard]] Error task_too_big();

}  // namespace postrider::amqp
