#pragma once
/// \file
/// The seam between the relay and a database: `Store`.
///
/// One call is one transaction. Calls block, each with a deadline, and never hold a lock or a
/// transaction when they return. The relay decides; a store only translates.
///
/// Ownership: the engine owns its store; a store owns its connection and opens it when needed.
///   After a lost connection the next call connects again.
/// Thread safety: one thread at a time per store object; several objects on one database are fine.
/// Time: every request carries `now`; empty (production) means the database's own clock.
/// Errors: each backend has one table from native codes to `ErrorCode` and `Disposition`. A lost
///   connection is `unavailable` with `retry` before COMMIT was sent and `commit_unknown` with
///   `in_doubt` after; unknown codes are `in_doubt` on commit, `retry` elsewhere.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/event.hpp>
#include <postrider/ids.hpp>
#include <postrider/result.hpp>
#include <postrider/store_values.hpp>

namespace postrider {

/// What a store declares about itself. Conformance tests turn on these.
struct StoreTraits {
  std::string_view name;        ///< "memory", "sqlite", "postgres", …
  std::int32_t partitions = 1;  ///< how many the schema has; 1 when there is one writer at a time
  bool durable = true;          ///< false only for the memory store
  bool concurrent_writers = false;  ///< a lower seq may commit after a higher one was read
  /// An owner whose session has ended is overtaken at once; without this only when its lease has
  /// run out.
  bool notices_death = false;
};

/// The relay's view of a database.
///
/// A delivery *blocks* its (route, ordering key) while it is the current generation and pending,
/// dispatched, or failed under `OnFailed::halt`. Held rows block nobody.
class Store {
 public:
  virtual ~Store() = default;

  [[nodiscard]] virtual StoreTraits traits() const = 0;

  /// Checks that the schema is one that this build can use, without changing it.
  ///
  /// Errors: `schema_mismatch` naming both versions and the command to run.
  virtual Result<void> check_schema(Deadline deadline) = 0;

  /// Writes events in a transaction of its own, in the order given, and returns their ids.
  ///
  /// Requires: each passes `check`. Errors: `already_exists` when an id or an aggregate's version
  /// is taken; then none is written.
  virtual Result<std::vector<EventId>> add(std::span<const NewEvent> events, Deadline deadline) = 0;

  /// Writes one event in a transaction of its own, once per key, as `Outbox::add` with a key does.
  ///
  /// Returns the id of the event that took the key, be it this one or an earlier one with the same
  /// content. Blocking: also until an open transaction with the same key has ended.
  /// Errors: also `key_reused`; then nothing is written.
  virtual Result<EventId> add_once(const NewEvent& event, const IdempotencyKey& key,
                                   Deadline deadline) = 0;

  /// Renews what `owner` holds and takes free or expired partitions until it holds `at_most`.
  ///
  /// Tokens strictly increase per partition, also over releases; a lease that ran out and that
  /// nobody took goes on under its token. A partition that the owner holds beyond `at_most` is
  /// kept. Taking one that its last owner has not released counts a crash on its row.
  /// With `notices_death` a lease also ends with its owner's session. The owner may have lost only
  /// its connection and still believe in the lease: the token fences it off.
  /// Cost: one statement or two, whatever the number of partitions.
  virtual Result<LeaseGrant> lease(const LeaseRequest& request, Deadline deadline) = 0;

  /// Gives leases back at once, with their suspicion cleared; those that are not ours any more are
  /// passed over.
  virtual Result<void> release(std::span<const Lease> leases, Deadline deadline) = 0;

  /// Reads the next events that are not routed yet, without the held ones: `held` reads those.
  /// Writes nothing.
  virtual Result<ClaimedBatch> claim(const ClaimRequest& request, Deadline deadline) = 0;

  /// Reads deliveries that may be attempted now, and dispatched ones that are overdue. Writes
  /// nothing.
  virtual Result<DueBatch> due(const DueRequest& request, Deadline deadline) = 0;

  /// Reads events that wait for a valid route. Writes nothing.
  virtual Result<HeldBatch> held(const HeldRequest& request, Deadline deadline) = 0;

  /// Makes results durable: locks the partition rows, compares the tokens, and applies everything.
  ///
  /// Requires: every partition in the request has its lease in `leases`.
  /// Repeatable: a request whose answer was lost may be given again; rows that it had stored
  /// already are left alone and its events are answered as stale.
  virtual Result<SettleResult> settle(const SettleRequest& request, Deadline deadline) = 0;
};

}  // namespace postrider
