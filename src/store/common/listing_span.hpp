#pragma once
/// \file
/// Which part of an index a page of a list needs, the same for every SQL store.
///
/// Events are listed along the primary key; deliveries along the unique index on (event_seq, route,
/// generation), or along the index of a status where it has one. A filter that no index answers is
/// bounded: the search ends after so many rows, and the page says where to go on.
///
/// Thread safety: functions without state.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <postrider/listing.hpp>
#include <postrider/result.hpp>

namespace postrider::store {

inline constexpr std::int64_t above_all_events = std::numeric_limits<std::int64_t>::max();

/// Whether a search along the primary key might go on for long.
[[nodiscard]] bool needs_bound(const EventFilter& filter);
/// Says where the next page begins, `bound` being where the search has ended.
void set_next(EventPage& page, const EventFilter& filter, std::optional<std::int64_t> bound);
/// Takes the names out of the column `headers`, or the reason why it cannot be read.
void set_headers(EventDetail& detail, const std::optional<std::string>& text);

/// The status that is asked for, and whether it has an index of its own.
[[nodiscard]] std::optional<DeliveryStatus> status_of(const DeliveryFilter& filter);
[[nodiscard]] bool has_index(const DeliveryFilter& filter);

/// Where a delivery stands in the list.
struct DeliveryPlace {
  std::int64_t event_seq = 0;
  std::string route;
  std::int32_t generation = 1;
};

/// Where a search ends, and the last delivery that it looks at.
struct DeliveryBound {
  DeliveryId id;
  std::int64_t event_seq = 0;
};

/// Deliveries of the events from `first` to `last`, those of `last` only behind `after`.
struct DeliverySpan {
  std::int64_t first = 0;
  std::int64_t last = above_all_events;
  std::optional<DeliveryPlace> after;
  std::optional<DeliveryId> bound;  ///< set when the search may end before the last row
};

/// What a store is asked before it lists deliveries.
class DeliveryPlaces {
 public:
  virtual Result<std::optional<std::int64_t>> seq_of(const EventId& event) = 0;
  virtual Result<std::optional<DeliveryPlace>> place_of(const DeliveryId& delivery) = 0;
  /// The bound of a search that looks at `rows` rows of `span`; nothing when it has fewer.
  virtual Result<std::optional<DeliveryBound>> bound_of(const DeliverySpan& span,
                                                        std::int64_t rows) = 0;

 protected:
  ~DeliveryPlaces() = default;
};

/// Nothing when no row can be in it.
[[nodiscard]] Result<std::optional<DeliverySpan>> span_of(const DeliveryFilter& filter,
                                                          DeliveryPlaces& places);
void set_next(DeliveryPage& page, const DeliveryFilter& filter, const DeliverySpan& span);

}  // namespace postrider::store
