#pragma once
/// \file
/// The seam that deletes what is older than its retention: `Purger`.
///
/// Ownership: as of `Store`: a purger owns its connection and opens it when needed.
/// Thread safety: one thread at a time per object.
/// Errors: those of the store's own table.

#include <optional>

#include <postrider/operations.hpp>
#include <postrider/result.hpp>
#include <postrider/retention.hpp>

namespace postrider {

class Purger {
 public:
  virtual ~Purger() = default;

  /// Deletes one slice in one transaction.
  ///
  /// An event goes with all its deliveries, or stays: it goes if it is routed, its last completion
  /// is older than `older_than`, and nothing of it is pending, dispatched, held or failed. A dead
  /// letter that has a later generation is history and keeps nothing. The statement that deletes
  /// looks at all of this itself.
  ///
  /// With `who`, a person, what went is written to `postrider_audit` in the same transaction.
  /// Blocking: on SQLite, writers wait while the slice commits; on PostgreSQL nobody waits, and
  ///   rows that another purge has locked are passed over.
  /// Errors: also `invalid_argument` and `limit_exceeded` for `rows` out of range.
  /// Cost: of the slice, whatever the size of the tables.
  virtual Result<PurgeSlice> purge(const PurgeRequest& request, const std::optional<Operator>& who,
                                   Deadline deadline) = 0;
};

}  // namespace postrider
