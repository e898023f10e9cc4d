#pragma once
/// \file
/// Reading of events that are new or were late: `Store::claim`. Writes nothing and needs no
/// transaction: each look is one statement, and so one snapshot.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <postrider/store.hpp>

#include "store/mariadb/mariadb_connection.hpp"
#include "store/mariadb/mariadb_read_mark.hpp"
#include "store/mariadb/mariadb_rows.hpp"

namespace postrider::store::mariadb {

/// The keys of a batch, whose heads its reader has to know.
class HeadKeys {
 public:
  HeadKeys() : keys_{std::string(global_ordering_key)} {}
  void add(const Event& event) {
    if (event.aggregate) keys_.insert(aggregate_key(*event.aggregate));
  }
  [[nodiscard]] const std::set<std::string>& keys() const noexcept { return keys_; }

 private:
  std::set<std::string> keys_;
};

/// Of `keys`, the pairs with a blocking delivery. Requires: the connection is ready.
[[nodiscard]] Result<std::vector<OpenHead>> list_heads(MariadbConnection& connection,
                                                       const HeadKeys& keys);

/// What a reader remembers of its slow sweeps: the net for numbers that were given up too early.
///
/// A sweep looks for unrouted events below the stored marks of the partitions, where everything is
/// settled and so nothing is on its way, and has them looked for again as missing.
struct Sweep {
  std::optional<Timestamp> last;
  /// Found by an earlier sweep and read since. Until they are settled they look the same.
  std::set<std::int64_t> found;
};

/// One call of `claim`. Requires: the connection is ready.
class ClaimReader {
 public:
  /// `sweep` is kept between calls.
  ClaimReader(MariadbConnection& connection, const ClaimRequest& request, Sweep& sweep);

  Result<ClaimedBatch> read(Deadline deadline);

 private:
  /// What became of one look.
  enum class Look { filled, exhausted, again };

  Result<void> take_marks();
  Result<Look> look();
  [[nodiscard]] MariadbQuery claim_query();
  /// One row of either kind; false when the batch is full without it.
  bool take(const MariadbQuery& row);
  Result<void> fetch_large();
  Result<void> sweep_settled();
  Result<std::int64_t> settled_position();
  Result<void> give_up_missing();
  Result<bool> can_be_given_up(const Missing& missing);
  [[nodiscard]] std::int64_t row_limit() const;
  [[nodiscard]] std::int64_t now_ms() const;

  MariadbConnection& connection_;
  const ClaimRequest& request_;
  Sweep& sweep_;
  std::size_t limit_;
  std::vector<std::int64_t> partitions_;
  ReadPosition position_;
  int looks_ = 0;
  std::size_t bytes_ = 0;
  std::vector<std::int64_t> large_;  ///< came without their payloads
  Timestamp now_;
  ClaimedBatch batch_;
};

}  // namespace postrider::store::mariadb
