#pragma once
/// \file
/// From the columns of an event row to an `Event`, the same for every SQL store.
///
/// A row that cannot be read is never dropped and never fails the batch it came in: it is handed on
/// with a reason, so that the relay can put it aside and go on with its neighbours.
///
/// Thread safety: functions without state.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <postrider/event.hpp>

namespace postrider::store {

/// Columns of outbox_events as the client library gives them. `payload` holds whichever column,
/// `payload` or `payload_bytes`, is set. A time is absent when the backend could not read it.
struct EventRow {
  std::int64_t seq = 0;
  std::string id;
  std::optional<std::string> aggregate_type;
  std::optional<std::string> aggregate_id;
  std::optional<std::int64_t> aggregate_version;
  std::string type;
  std::string payload;
  std::string content_type;
  std::optional<std::string> headers;
  std::optional<Timestamp> created_at;
  std::optional<Timestamp> available_at;
};

struct ReadEvent {
  std::shared_ptr<const Event> event;  ///< never null; fields that cannot be read are empty
  std::string malformed;               ///< why this row can go nowhere; empty when it is sound
};

[[nodiscard]] ReadEvent read_event(EventRow row);

}  // namespace postrider::store
