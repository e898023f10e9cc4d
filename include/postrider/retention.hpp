#pragma once
/// \file
/// What is kept, for how long, and how it is deleted: in slices, so that no delete is long.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <postrider/clock.hpp>
#include <postrider/ids.hpp>
#include <postrider/result.hpp>

namespace postrider {

/// What has a retention of its own.
enum class Kept : std::uint8_t {
  events,    ///< with their deliveries
  keys,      ///< idempotency keys of writers
  receipts,  ///< of the inbox
  workers,   ///< starts of workers that have stopped or died
};

/// In the order of a sweep.
inline constexpr std::array all_kept{Kept::events, Kept::keys, Kept::receipts, Kept::workers};

[[nodiscard]] std::string_view to_string(Kept kept) noexcept;

/// How long what is finished is kept, by the database's clock. Zero keeps it for ever; else 1 s to
/// 3650 d.
struct Retention {
  /// From an event's completion: the later of its mark and the end of its last delivery.
  milliseconds events = std::chrono::hours(24 * 7);
  /// From the first use of a key. A repeated request that comes later writes a second event.
  milliseconds keys = std::chrono::hours(24 * 7);
  /// From the receipt. At least as long as a copy of the message may still come, from whatever
  /// source: the broker's own retention, redrives, replays, restored backups.
  milliseconds receipts = std::chrono::hours(24 * 30);
  /// From the last that was heard of a worker that has stopped or died.
  milliseconds workers = std::chrono::hours(24 * 30);

  static constexpr milliseconds least = std::chrono::seconds(1);
  static constexpr milliseconds most = std::chrono::hours(24 * 3650);

  [[nodiscard]] milliseconds of(Kept kept) const noexcept;
};

/// One slice of a sweep over what is kept.
struct PurgeRequest {
  Kept kept = Kept::events;
  milliseconds older_than{0};
  /// Events only: the slice looks at those after this seq. What it has to leave is so passed over
  /// once in a sweep, and not once in every slice.
  Seq after;
  /// Bounds the slice: events looked at, keys, receipts or workers deleted. 1 to 10,000.
  std::size_t rows = 500;
  /// Counts and deletes nothing; all but events are counted at once.
  bool dry_run = false;
  std::optional<Timestamp> now;

  static constexpr std::size_t most_rows = 10'000;
};

/// Tells whether `request` may be used. Errors: `invalid_argument`, `limit_exceeded`.
[[nodiscard]] Result<void> check(const PurgeRequest& request);

struct PurgeSlice {
  std::int64_t rows = 0;  ///< events, keys, receipts or workers that went, or would go
  Seq last;               ///< events: `after` of the next slice
  bool more = false;      ///< another slice may find something
};

}  // namespace postrider
