#pragma once
/// \file
/// Rows of MariaDB as the values of the seams, and the values as parameters.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <postrider/store.hpp>

#include "store/common/event_row.hpp"
#include "store/mariadb/mariadb_query.hpp"

namespace postrider::store::mariadb {

/// Columns of an event as all statements that return one give them: those of `ReadEvent`, and slot.
inline constexpr int event_columns = 12;
inline constexpr int event_payload_column = 6;
inline constexpr int event_slot_column = 11;
inline constexpr int event_created_column = 9;

/// Columns of a delivery likewise.
inline constexpr int delivery_columns = 19;

/// An event and the slot of its aggregate.
struct SlottedEvent {
  ReadEvent read;
  int slot = 0;
};

[[nodiscard]] SlottedEvent read_event_columns(const MariadbQuery& row, int first_column);

/// The columns of an event as a claim hands them on.
[[nodiscard]] ClaimedEvent claimed_event(SlottedEvent event, Timestamp now, int partitions);

struct ReadDelivery {
  Delivery delivery;
  std::string malformed;  ///< why the row cannot be trusted; empty when it is sound
};

[[nodiscard]] ReadDelivery read_delivery_columns(const MariadbQuery& row);

/// How long from `now` on, at least a millisecond while `at` lies ahead; never negative.
[[nodiscard]] milliseconds until(Timestamp at, Timestamp now);

[[nodiscard]] std::string id_text(const Uuid& id);
[[nodiscard]] std::optional<std::string> id_text(const std::optional<DispatchId>& id);
void bind_time_if(MariadbQuery& row, const char* name, const std::optional<Timestamp>& time);

/// Gives a tuple of `events_insert` the columns of an event. Errors: headers that cannot be
/// written.
Result<void> bind_event(MariadbQuery& row, const NewEvent& event, const EventId& id);

/// From a row of partitions_list.
[[nodiscard]] Suspicion read_suspicion(const MariadbQuery& row);

/// The numbers of these partitions, for IN.
[[nodiscard]] std::vector<std::int64_t> numbers_of(std::span<const Partition> partitions);

/// The first column of all rows.
[[nodiscard]] Result<std::vector<std::int64_t>> integers_of(MariadbQuery& rows);
[[nodiscard]] Result<std::vector<std::string>> texts_of(MariadbQuery& rows);

}  // namespace postrider::store::mariadb
