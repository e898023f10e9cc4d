#pragma once
/// \file
/// An event: an immutable fact, written in the transaction of the business data that it tells of.
///
/// Payloads are bytes, identical from insert to destination; nothing here parses them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <postrider/clock.hpp>
#include <postrider/ids.hpp>
#include <postrider/result.hpp>

namespace postrider {

/// The thing whose events keep their order.
struct Aggregate {
  std::string type;
  std::string id;
  friend auto operator<=>(const Aggregate&, const Aggregate&) = default;
  friend bool operator==(const Aggregate&, const Aggregate&) = default;
};

/// Names and values that travel beside the payload, sorted by name.
using Headers = std::map<std::string, std::string, std::less<>>;

/// An event before it is written.
struct NewEvent {
  std::optional<EventId> id;           ///< made when absent; a UUIDv7 is best for the index
  std::optional<Aggregate> aggregate;  ///< absent: no order with any other event
  std::optional<std::int64_t> aggregate_version;  ///< unique per aggregate when given
  std::string type;                               ///< dotted name such as "order.placed"
  std::string payload;                            ///< bytes; may hold NUL and invalid UTF-8
  std::string content_type = "application/json";
  Headers headers;
  std::optional<Timestamp> available_at;  ///< not to be delivered before this time
};

/// What a client calls its own request, so that a repeated request writes no second event.
struct IdempotencyKey {
  std::string scope;  ///< whose keys these are: "orders-api"; 1 to 255 bytes
  std::string key;    ///< unique within the scope; 1 to 255 bytes
};

/// Tells whether `key` may be used: lengths, UTF-8, no control characters. Errors: as of `check`.
[[nodiscard]] Result<void> check(const IdempotencyKey& key);

/// An event as it stands in the outbox.
struct Event {
  Seq seq;
  EventId id;
  std::optional<Aggregate> aggregate;
  std::optional<std::int64_t> aggregate_version;
  std::string type;
  std::string payload;
  std::string content_type;
  Headers headers;
  Timestamp created_at;
  std::optional<Timestamp> available_at;
};

/// Bounds that `check` applies before any SQL. Raising `payload_bytes` costs memory: a relay may
/// hold a whole window of payloads.
struct EventLimits {
  static constexpr std::size_t most_payload_bytes = 64U << 20U;

  std::size_t payload_bytes = 1U << 20U;  ///< 1 to `most_payload_bytes`
  std::size_t headers = 64;               ///< number of headers
  std::size_t header_bytes = 8U << 10U;   ///< name and value of one header together
  /// Bytes of the type, the aggregate's type and id, the content type and of a header's name.
  /// Source: an AMQP short string holds 255 bytes, the least of all transports.
  std::size_t name_bytes = 255;
};

/// Tells whether `event` may be written.
///
/// Names must be valid UTF-8 without control characters, `type` and both parts of an aggregate not
/// empty. Errors: `invalid_argument` with field and position, `limit_exceeded` with both numbers.
[[nodiscard]] Result<void> check(const NewEvent& event, const EventLimits& limits = {});

/// The first 14 bits of md5(type '/' id), the same in every language; 0 to 16383. An event without
/// aggregate takes md5 of its id's text.
[[nodiscard]] std::int32_t slot_of(const Aggregate& aggregate);
[[nodiscard]] std::int32_t slot_of(const EventId& id);

/// The text under which deliveries of one aggregate queue behind each other: type '/' id.
[[nodiscard]] std::string aggregate_key(const Aggregate& aggregate);

}  // namespace postrider
