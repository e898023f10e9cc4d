#pragma once
/// \file
/// Reading of events that are new or were late: `Store::claim`.
///
/// One look is one round trip: events_claim and, in a transaction of its own behind it, the next
/// xid; see postgres_read_mark.hpp for why the second comes second. Looks are repeated within a
/// call only while rows of others fill them.
///
/// Memory: all payloads of a look together are bounded by the bytes asked for, as a payload over
/// its share makes the reader turn to events_claim_weighed.

#include <set>
#include <string>

#include <postrider/store.hpp>

#include "store/postgres/postgres_connection.hpp"
#include "store/postgres/postgres_read_mark.hpp"

namespace postrider::store::postgres {

/// The keys of a batch, whose heads its reader has to know.
class HeadKeys {
 public:
  HeadKeys();
  void add(const Event& event);
  [[nodiscard]] const std::set<std::string>& keys() const noexcept { return keys_; }

 private:
  std::set<std::string> keys_;
};

/// Of `keys`, the pairs with a blocking delivery. Cost: a round trip.
[[nodiscard]] Result<std::vector<OpenHead>> list_heads(PostgresConnection& connection,
                                                       const HeadKeys& keys, Deadline deadline);

/// One call of `claim`. Requires: the connection is open.
class ClaimReader {
 public:
  /// `weighed` is kept between calls: a table of large payloads is read by weight from the start.
  ClaimReader(PostgresConnection& connection, const ClaimRequest& request, bool& weighed);

  Result<ClaimedBatch> read(Deadline deadline);

 private:
  /// What became of one look.
  enum class Look { filled, exhausted, again };

  Result<void> take_marks(Deadline deadline);
  Result<Look> look(Deadline deadline);
  [[nodiscard]] Call claim_call() const;
  Result<Look> take_rows(const Rows& rows, std::int32_t age_of_3);
  /// False when the batch is full without this row.
  bool take(const Rows& rows, int row);
  [[nodiscard]] int row_limit() const;

  PostgresConnection& connection_;
  const ClaimRequest& request_;
  bool& weighed_;
  std::size_t limit_;
  std::string partition_bits_;
  ReadPosition position_;
  std::int64_t furthest_ = 0;  // of all marks of this system
  bool heads_exist_ = false;
  int looks_ = 0;
  std::size_t bytes_ = 0;
  bool met_large_ = false;
  Timestamp now_;
  ClaimedBatch batch_;
};

}  // namespace postrider::store::postgres
