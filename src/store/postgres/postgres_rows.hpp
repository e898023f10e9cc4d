#pragma once
/// \file
/// Rows of our tables as the values of the seams.
///
/// Thread safety: functions without state.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <postrider/store.hpp>

#include "store/postgres/postgres_values.hpp"

namespace postrider::store::postgres {

/// Columns of an event, from seq to slot, as all statements that return one give them.
inline constexpr int event_columns = 13;

/// Columns of a delivery, from id to generation, likewise.
inline constexpr int delivery_columns = 19;

struct EventColumns {
  std::shared_ptr<const Event> event;
  std::int32_t slot = 0;
  std::string malformed;  ///< why this event can go nowhere; empty when it is sound
};

/// Reads the event whose seq stands in `first_column`.
[[nodiscard]] EventColumns read_event_columns(const Rows& rows, int row, int first_column);

[[nodiscard]] ClaimedEvent claimed_event(EventColumns columns, Timestamp now, int partitions);

struct DeliveryColumns {
  Delivery delivery;
  std::string malformed;  ///< why the row cannot be trusted; empty when it is sound
};

/// Reads the delivery whose id stands in column 0.
[[nodiscard]] DeliveryColumns read_delivery_columns(const Rows& rows, int row);

/// The two columns from `first_column` on.
[[nodiscard]] Suspicion read_suspicion(const Rows& rows, int row, int first_column);

/// How long from `now` on, at least a millisecond while `at` lies ahead; never negative.
[[nodiscard]] milliseconds until(Timestamp at, Timestamp now);

/// One bit per partition, as the server's get_bit counts them.
[[nodiscard]] std::string partition_bits(const std::vector<Partition>& asked, int partitions);

[[nodiscard]] std::vector<Uuid> uuids_in(const Rows& rows, int column);

}  // namespace postrider::store::postgres
