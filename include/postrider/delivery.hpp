#pragma once
/// \file
/// A delivery: one event on one route, and its life.
///
///                  ┌────────────────────────────┐
///                  ▼                            │ a failure with a retry delay left
///   held ───▶ pending ───▶ dispatched ──────────┤
///                  │            │               │
///                  │            └──▶ completed  └──▶ failed ───▶ discarded (a person)
///                  └──▶ cancelled (a person)
///
/// Final are completed, discarded, cancelled, and for the machine also failed: `dead retry` makes a
/// new row with the next generation and leaves the old one as history.
///
/// On publish routes an attempt is made straight from pending: the relay's lease keeps others away.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/ids.hpp>
#include <postrider/route.hpp>

namespace postrider {

enum class DeliveryStatus : std::uint8_t {
  held,        ///< no valid route yet
  pending,     ///< waits until its due time or behind its aggregate's head
  dispatched,  ///< handed over; the result is awaited until its deadline
  completed,   ///< the destination confirmed
  failed,      ///< a dead letter
  discarded,   ///< given up by a person
  cancelled,   ///< withdrawn by a person before it was handed over
};

[[nodiscard]] std::string_view to_string(DeliveryStatus status) noexcept;
[[nodiscard]] std::optional<DeliveryStatus> parse_delivery_status(std::string_view text) noexcept;

/// All statuses in the order of their life, for tables and tests.
[[nodiscard]] const std::vector<DeliveryStatus>& all_delivery_statuses();

/// A delivery row. Times are the database's.
struct Delivery {
  DeliveryId id;
  Seq event_seq;
  EventId event_id;
  std::string route;  ///< empty while held
  std::optional<std::string> ordering_key;
  DeliveryStatus status = DeliveryStatus::pending;
  int attempts = 0;  ///< failed attempts
  std::vector<milliseconds> retry_delays;
  milliseconds timeout{0};
  OnFailed on_failed = OnFailed::halt;
  std::optional<DispatchId> dispatch_id;  ///< of the last attempt
  Timestamp available_at;
  std::optional<Timestamp> dispatched_at;
  std::optional<Timestamp> delivery_timeout_at;
  std::optional<Timestamp> finished_at;
  std::string failure_code;
  std::string failure_detail;
  bool ambiguous = false;  ///< an attempt may have arrived although it was not confirmed
  int generation = 1;
};

}  // namespace postrider
