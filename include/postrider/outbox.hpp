#pragma once
/// \file
/// Writing events: what an application does inside a transaction that it opened itself.
///
/// The classes that write are one per driver, because the transaction is the driver's:
///   - postrider/sqlite.hpp  `SqliteOutbox`, for a `sqlite3*`;
///   - postrider/libpq.hpp   `PostgresOutbox`, for a `PGconn*`;
///   - postrider/pqxx.hpp    `PqxxOutbox`, for a `pqxx::transaction_base&`.
/// All keep the same contract, which stands at `Outbox`. No route is read and no broker is touched:
/// what is written leaves the database later, and only if the transaction commits.

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <postrider/event.hpp>
#include <postrider/ids.hpp>
#include <postrider/result.hpp>
#include <postrider/schema.hpp>

namespace postrider {

struct OutboxOptions {
  SchemaNames names;   ///< those of the migration
  EventLimits limits;  ///< a larger payload costs memory in every relay
};

/// The outbox inside one open transaction, as a unit of work is given it.
class Outbox {
 public:
  virtual ~Outbox() = default;

  /// Writes one event and returns its id.
  ///
  /// Exactly one row, which becomes visible with the transaction's other rows or never.
  /// Order: events of one aggregate leave in the order in which their transactions commit.
  /// Blocking: on PostgreSQL until other open transactions of the same aggregate have ended; on
  ///   SQLite until the write lock is free, for as long as the connection's busy timeout says.
  /// Errors: those of `check` before any SQL, so the transaction goes on; `no_transaction` when
  ///   none is open, when it has failed already, or when it is one that cannot write;
  ///   `already_exists` when the id or the aggregate's version is taken. After any error of the
  ///   database roll back: what else the transaction wrote must not commit without its event.
  virtual Result<EventId> add(const NewEvent& event) = 0;

  /// The same, once per key: the first call writes; a later one with the same content returns the
  /// first one's id and writes nothing. Content is type, aggregate, payload, content type and
  /// headers.
  ///
  /// Blocking: also until an open transaction with the same key has ended.
  /// Errors: also `key_reused` when the content is another, and then nothing is written.
  virtual Result<EventId> add(const NewEvent& event, const IdempotencyKey& key) = 0;

  /// Writes all of them or, with an error, none. Returns the ids in the order given, which is also
  /// the order in which they leave.
  ///
  /// On PostgreSQL the locks of all aggregates are taken first and in one order, so that two
  /// writers of the same aggregates do not wait for each other.
  virtual Result<std::vector<EventId>> add_all(std::span<const NewEvent> events) = 0;
};

/// Binds a driver's outbox to one transaction, and remembers the first call that failed.
///
/// Ownership: borrows both, which must outlive it.
template <class DriverOutbox, class Handle>
class BoundOutbox final : public Outbox {
 public:
  BoundOutbox(const DriverOutbox& outbox, Handle handle) : outbox_(&outbox), handle_(handle) {}

  Result<EventId> add(const NewEvent& event) override { return keep(outbox_->add(handle_, event)); }
  Result<EventId> add(const NewEvent& event, const IdempotencyKey& key) override {
    return keep(outbox_->add(handle_, event, key));
  }
  Result<std::vector<EventId>> add_all(std::span<const NewEvent> events) override {
    return keep(outbox_->add_all(handle_, events));
  }

  [[nodiscard]] const std::optional<Error>& failure() const noexcept { return failure_; }

 private:
  template <class T>
  Result<T> keep(Result<T> result) {
    if (!result && !failure_) failure_ = result.error();
    return result;
  }

  const DriverOutbox* outbox_;
  Handle handle_;
  std::optional<Error> failure_;
};

}  // namespace postrider
