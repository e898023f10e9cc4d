#pragma once
/// \file
/// For applications on SQLite: events and receipts inside a transaction of their own `sqlite3*`.
///
///     postrider::SqliteOutbox outbox;
///     auto placed = postrider::transaction(db, [&]() -> postrider::Result<postrider::EventId> {
///       … INSERT INTO orders …
///       return outbox.add(db, event);
///     });
///
/// Ownership: a handle is borrowed for the length of the call; nothing is left prepared on it.
/// Thread safety: `SqliteOutbox` may be shared by threads that each have a handle of their own.

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <postrider/inbox.hpp>
#include <postrider/outbox.hpp>
#include <postrider/transaction.hpp>

struct sqlite3;

namespace postrider {

/// Writes events. The contract stands at `Outbox`.
///
/// Requires: the outbox is in the main database of the handle, not in an attached one.
/// Errors: `no_transaction` in autocommit mode, and in a deferred transaction that has only read:
///   another writer may have committed since, and then it can never write. Begin with BEGIN
///   IMMEDIATE. `unsupported` with PRAGMA synchronous below FULL: a power cut could take back a
///   commit whose event was sent.
/// Cost: a statement is prepared in each call.
class SqliteOutbox {
 public:
  explicit SqliteOutbox(OutboxOptions options = {});
  ~SqliteOutbox();
  SqliteOutbox(SqliteOutbox&&) noexcept;
  SqliteOutbox& operator=(SqliteOutbox&&) noexcept;

  Result<EventId> add(sqlite3* database, const NewEvent& event) const;
  Result<EventId> add(sqlite3* database, const NewEvent& event, const IdempotencyKey& key) const;
  Result<std::vector<EventId>> add_all(sqlite3* database, std::span<const NewEvent> events) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Receipts of messages. The contract stands in postrider/inbox.hpp; what transactions it takes, at
/// `SqliteOutbox`. Thread safety: any thread, each with a handle of its own.
class SqliteInbox {
 public:
  explicit SqliteInbox(SchemaNames names = {}) : names_(std::move(names)) {}

  /// Records the message: `processed` when the effect is now to be written, in this transaction.
  Result<InboxResult> claim(sqlite3* database, const InboxMessage& message) const;

  template <class Handler>
  Result<InboxResult> process(sqlite3* database, const InboxMessage& message,
                              Handler&& handler) const {
    return process_in(*this, database, message, std::forward<Handler>(handler));
  }

 private:
  SchemaNames names_;
};

/// A transaction that ends with its object: rolled back, unless it was committed.
///
/// Requires: the handle outlives it and is used by one thread at a time.
class SqliteTransaction {
 public:
  /// BEGIN IMMEDIATE. Errors: `invalid_argument` when one is open already; `busy` when another
  /// connection writes for longer than the busy timeout.
  [[nodiscard]] static Result<SqliteTransaction> begin(sqlite3* database);

  ~SqliteTransaction();
  SqliteTransaction(SqliteTransaction&& other) noexcept
      : database_(std::exchange(other.database_, nullptr)) {}
  SqliteTransaction& operator=(SqliteTransaction&&) = delete;

  /// Errors: `no_transaction` when somebody else has ended it. After any error it is rolled back.
  Result<void> commit();
  /// Idempotent; nothing after `commit`.
  void roll_back() noexcept;

 private:
  explicit SqliteTransaction(sqlite3* database) : database_(database) {}

  sqlite3* database_;
};

/// Runs `work()` in a transaction; see postrider/transaction.hpp for how it ends.
template <class Work>
auto transaction(sqlite3* database, Work&& work) {
  return complete_transaction(SqliteTransaction::begin(database), std::forward<Work>(work));
}

/// Runs `work(Outbox&)` in a transaction.
template <class Work>
auto unit_of_work(sqlite3* database, const SqliteOutbox& outbox, Work&& work) {
  return complete_unit(SqliteTransaction::begin(database), BoundOutbox(outbox, database),
                       std::forward<Work>(work));
}

/// The same with default options.
template <class Work>
auto unit_of_work(sqlite3* database, Work&& work) {
  return unit_of_work(database, SqliteOutbox(), std::forward<Work>(work));
}

}  // namespace postrider
