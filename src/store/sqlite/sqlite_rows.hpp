#pragma once
/// \file
/// Rows of SQLite as the values of the seams, and the values as parameters.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <postrider/store.hpp>

#include "store/common/event_row.hpp"
#include "store/sqlite/sqlite_connection.hpp"

namespace postrider::store::sqlite {

/// SQLite has one partition: it lets one transaction write at a time.
inline constexpr Partition only_partition{0};

/// Columns of an event as all statements that return one give them.
inline constexpr int event_columns = 11;
inline constexpr int event_payload_column = 6;

/// Columns of a delivery likewise.
inline constexpr int delivery_columns = 19;

[[nodiscard]] ReadEvent read_event_columns(const SqliteQuery& row);

/// The columns of an event as a claim hands them on.
[[nodiscard]] ClaimedEvent read_claimed_event(const SqliteQuery& row, Timestamp now);

struct ReadDelivery {
  Delivery delivery;
  std::string malformed;  ///< why the row cannot be trusted; empty when it is sound
};

[[nodiscard]] ReadDelivery read_delivery_columns(const SqliteQuery& row);

/// How long from `now` on, at least a millisecond while `at` lies ahead; never negative.
[[nodiscard]] milliseconds until(Timestamp at, Timestamp now);

[[nodiscard]] std::string id_text(const Uuid& id);
[[nodiscard]] std::optional<std::string> id_text(const std::optional<DispatchId>& id);
[[nodiscard]] std::optional<std::string> time_text(const std::optional<Timestamp>& time);

/// Gives `events_insert` the columns of an event, which must outlive the query. Errors: headers
/// that cannot be written.
Result<void> bind_event(SqliteQuery& row, const NewEvent& event, const EventId& id);

/// From a row of partitions_list.
[[nodiscard]] Suspicion read_suspicion(const SqliteQuery& row);

}  // namespace postrider::store::sqlite
