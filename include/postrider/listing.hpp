#pragma once
/// \file
/// Rows of the outbox as people look at them: what `postrider events` and `postrider deliveries`
/// ask for and get, page by page.
///
/// A list holds neither payloads nor values of headers. Its cost has a bound that does not grow
/// with the table: at most `limit` rows come, and at most `examine` rows are looked at to find
/// them. Where that ends the search early, `next` says where to go on.
///
/// Thread safety: values.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/delivery.hpp>
#include <postrider/event.hpp>
#include <postrider/ids.hpp>
#include <postrider/result.hpp>

namespace postrider {

/// Most rows of one page.
inline constexpr std::size_t most_listed = 10'000;
/// Most rows that are looked at for one page: a tenth of a second on an ordinary disk.
inline constexpr std::size_t most_examined = 100'000;

/// Where an event stands.
enum class EventState : std::uint8_t {
  unrouted,  ///< a relay has not settled it yet
  held,      ///< no route matches it; it waits for one
  routed,    ///< settled: delivered, or its open deliveries are rows
};

[[nodiscard]] std::string_view to_string(EventState state) noexcept;
[[nodiscard]] std::optional<EventState> parse_event_state(std::string_view text) noexcept;

/// Which events are meant. All fields that are set must hold.
struct EventFilter {
  std::optional<std::string> type;
  std::optional<Aggregate> aggregate;
  std::optional<EventState> state;
  std::optional<milliseconds> since;  ///< written at most so long ago
  std::optional<milliseconds> until;  ///< written at least so long ago
  std::optional<Seq> after;           ///< the last one of the page before: only older ones
  std::size_t limit = 100;            ///< 1 to `most_listed`
  /// 1 to `most_examined`. Does not count for held events, which have an index.
  std::size_t examine = most_examined;
};

/// An event without its payload and headers.
struct EventSummary {
  Seq seq;
  EventId id;
  std::optional<Aggregate> aggregate;
  std::optional<std::int64_t> aggregate_version;
  std::string type;
  std::string content_type;
  std::int64_t payload_bytes = 0;
  Timestamp created_at;
  std::optional<Timestamp> available_at;
  std::optional<Timestamp> routed_at;
  EventState state = EventState::unrouted;
};

/// Newest first, that is, by falling `seq`.
struct EventPage {
  std::vector<EventSummary> events;
  std::optional<Seq> next;  ///< `after` of the next page; empty when there is none
};

/// One event. The values of its headers may be anybody's data and are left out.
struct EventDetail {
  EventSummary summary;
  std::vector<std::string> header_names;
  std::string malformed;               ///< why its headers cannot be read; empty when they can
  std::optional<std::string> payload;  ///< only when it was asked for
};

/// Which deliveries are meant. All fields that are set must hold.
struct DeliveryFilter {
  std::optional<DeliveryId> id;  ///< of history, too
  std::optional<EventId> event;
  std::optional<std::string> route;
  std::optional<DeliveryStatus> status;
  std::optional<Aggregate> aggregate;
  bool due = false;                 ///< pending, and its time has come
  bool history = false;             ///< dead letters that have a later generation, too
  std::optional<DeliveryId> after;  ///< the last one of the page before
  std::size_t limit = 100;          ///< 1 to `most_listed`
  /// 1 to `most_examined`. Does not count for what has an index: an id, an event, and the statuses
  /// held, pending, dispatched and (without history) failed.
  std::size_t examine = most_examined;
};

struct ListedDelivery {
  Delivery delivery;
  bool current = true;  ///< false: history, there is a later generation
  std::string event_type;
  std::optional<Aggregate> aggregate;
};

/// By falling `seq` of the event, then route, then generation.
struct DeliveryPage {
  std::vector<ListedDelivery> deliveries;
  std::optional<DeliveryId> next;  ///< `after` of the next page; empty when there is none
};

/// Errors: `invalid_argument` when `limit` or `examine` is out of its range.
[[nodiscard]] Result<void> check(const EventFilter& filter);
[[nodiscard]] Result<void> check(const DeliveryFilter& filter);

}  // namespace postrider
