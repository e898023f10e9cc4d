#pragma once
/// \file
/// How far the event table has been read: the position P, and F, the transactions that could still
/// add rows at or below it.
///
/// Numbers are handed out before commit, so a row below P may appear after P was reached. Its
/// transaction had its xid before it drew the number (the trigger sees to that), so it is one of
/// those that the snapshot of P saw in progress, or got its xid between that snapshot and the
/// moment H at which the next xid was read: F is the snapshot's list and all of [xmax, H). A later
/// snapshot in which a transaction of F is not in progress shows all of its rows at once, and it
/// leaves F.
///
/// A mark holds for the partitions that its claim asked for, and for no others: rows of others were
/// passed over.
///
/// Text form, also of the columns position, in_flight and server_identity:
///   mark       = position ';' in_flight ';' server_identity
///   in_flight  = floor '|' [ entry { ',' entry } ]
///   entry      = xid [ '-' xid ] [ '@' seq ]
///   identity   = system '/' timeline
/// Rows at or below `floor`, and those of an entry at or below its own seq, were read already.
///
/// Thread safety: values.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/result.hpp>
#include <postrider/store_values.hpp>

#include "store/postgres/postgres_connection.hpp"

namespace postrider::store::postgres {

/// Transactions in flight, both ends included.
struct XidRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::int64_t floor = 0;  ///< their rows up to here were read
  friend bool operator==(const XidRange&, const XidRange&) = default;
};

struct ReadPosition {
  std::int64_t seq = 0;
  std::int64_t floor = 0;
  std::vector<XidRange> in_flight;         ///< ascending, without overlap
  std::optional<ServerIdentity> identity;  ///< none: before every row
  friend bool operator==(const ReadPosition&, const ReadPosition&) = default;
};

/// What pg_current_snapshot() says.
struct Snapshot {
  std::uint64_t xmin = 0;
  std::uint64_t xmax = 0;
  std::vector<std::uint64_t> in_progress;  ///< below xmax, ascending
};

/// Errors: `invalid_argument` for a text that is not one of ours.
[[nodiscard]] Result<ReadPosition> decode_mark(const ReadMark& mark);
[[nodiscard]] ReadMark encode_mark(const ReadPosition& position);

/// The three columns of a partition row.
struct MarkColumns {
  std::int64_t position = 0;
  std::string in_flight;
  std::string server_identity;
};
[[nodiscard]] Result<MarkColumns> mark_columns(const ReadMark& mark);
[[nodiscard]] ReadMark mark_of(const MarkColumns& columns);

/// Errors: `protocol`.
[[nodiscard]] Result<Snapshot> parse_snapshot(std::string_view text);

/// The next xid to be given out, from the distance that age('3') told after `snapshot` was taken.
[[nodiscard]] std::uint64_t next_xid(const Snapshot& snapshot, std::int32_t age_of_3);

/// From which everything is read that is unread after any of the two.
[[nodiscard]] ReadPosition earlier(ReadPosition a, const ReadPosition& b);

/// What one statement read after `before`.
struct ReadStep {
  Snapshot snapshot;
  std::uint64_t next_xid = 0;  ///< read after the snapshot
  std::int64_t last_seq = 0;   ///< last row above the position; the position when there was none
  /// Not all rows at or below the position were taken: only those up to this seq.
  std::optional<std::int64_t> late_up_to;
};

/// The position after `step`. `server` is the server that it was read from; when the rows of
/// another system were read for the first time (see `adopt`), their old xids mean nothing
/// afterwards.
[[nodiscard]] ReadPosition advance(const ReadPosition& before, const ReadStep& step,
                                   const ServerIdentity& server);

/// Makes a position of another server usable on this one, whose last number given out is
/// `last_number`: a standby that was promoted, or a restored dump. Rows keep their seq and their
/// xids there. A position that the sequence has not reached proves nothing: everything unrouted is
/// read again then.
[[nodiscard]] ReadPosition adopt(ReadPosition position, std::int64_t last_number);

}  // namespace postrider::store::postgres
