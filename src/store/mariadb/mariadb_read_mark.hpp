#pragma once
/// \file
/// How far the event table has been read: the position P, and the numbers at or below it that were
/// not there when it went over them.
///
/// Numbers are drawn before commit, so a row below P may appear after P was reached. Each number
/// that was missing is looked for again, until a row with it is there, or until it is given up: it
/// has been missing for `gap_grace`, and nobody holds a lock on a row with it (see
/// events_probe). The grace covers the moment between drawing a number and inserting its row, in
/// which there is nothing that could be locked.
///
/// A mark holds for the partitions that its claim asked for, and for no others: rows of others were
/// passed over.
///
/// Text form, also of the column mark:
///   mark    = position [ ';' missing { ',' missing } ]
///   missing = seq [ '-' seq ] '@' milliseconds since 1970 at which it was missed first
///
/// Thread safety: values.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/result.hpp>
#include <postrider/store_values.hpp>

namespace postrider::store::mariadb {

/// How long a missing number is looked for at least.
inline constexpr milliseconds gap_grace{std::chrono::minutes(10)};
/// With more ranges than `crowded` the patience is this, as every claim looks for each of them.
inline constexpr milliseconds crowded_gap_grace{std::chrono::minutes(1)};
inline constexpr std::size_t crowded = 256;
/// Beyond this many the oldest are given up unasked: the mark stands on every partition row. Only
/// rolled back transactions leave gaps for long; this is 10,000 of them within a minute.
inline constexpr std::size_t most_ranges = 10'000;

/// Numbers that were not there, both ends included.
struct Missing {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t since_ms = 0;
  friend bool operator==(const Missing&, const Missing&) = default;
};

struct ReadPosition {
  std::int64_t seq = 0;
  std::vector<Missing> missing;  ///< ascending, without overlap
  friend bool operator==(const ReadPosition&, const ReadPosition&) = default;
};

/// Errors: `invalid_argument` for a text that is not one of ours.
[[nodiscard]] Result<ReadPosition> decode_mark(const ReadMark& mark);
[[nodiscard]] ReadMark encode_mark(const ReadPosition& position);

/// From which everything is read that is unread after any of the two.
[[nodiscard]] ReadPosition earlier(const ReadPosition& a, const ReadPosition& b);

/// Moves the position to the next row above it; what lies between is missing from `now_ms` on.
void go_on_to(ReadPosition& position, std::int64_t seq, std::int64_t now_ms);

/// A number that was missing has its row.
void take_found(ReadPosition& position, std::int64_t seq);

/// Looks again for a number that was given up. Requires: it is not above the position.
void miss_again(ReadPosition& position, std::int64_t seq, std::int64_t now_ms);

/// How long a range has to be missed before it may be given up.
[[nodiscard]] milliseconds patience_for(const ReadPosition& position);

/// Keeps `most_ranges`, the latest.
void forget_beyond_bound(ReadPosition& position);

}  // namespace postrider::store::mariadb
