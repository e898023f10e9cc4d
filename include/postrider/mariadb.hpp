#pragma once
/// \file
/// For applications on MariaDB with libmariadb: events and receipts inside a transaction of their
/// own `MYSQL*` (`st_mysql*` to the compiler).
///
///     postrider::MariadbOutbox outbox;
///     auto placed = postrider::transaction(connection, [&]() -> postrider::Result<…> {
///       … INSERT INTO orders …
///       return outbox.add(connection, event);
///     });
///
/// Ownership: a connection is borrowed for the length of the call; nothing is left prepared on it.
/// Blocking: calls wait for the server as mysql_real_query does; MYSQL_OPT_READ_TIMEOUT bounds it.
/// Thread safety: `MariadbOutbox` may be shared by threads that each have a connection of their
///   own.

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <postrider/inbox.hpp>
#include <postrider/outbox.hpp>
#include <postrider/transaction.hpp>

struct st_mysql;

namespace postrider {

/// Writes events. The contract stands at `Outbox`.
///
/// The session may have any character set, sql_mode, isolation level and time zone.
/// Requires: all results of earlier statements were read.
/// Errors: besides, `conflict` (deadlock, a row changed since it was read) and `busy` (lock wait
///   timeout, after which the server has undone that statement alone): roll back and repeat the
///   whole transaction.
/// Cost: one round trip, two with a key, three with several aggregates.
class MariadbOutbox {
 public:
  explicit MariadbOutbox(OutboxOptions options = {});
  ~MariadbOutbox();
  MariadbOutbox(MariadbOutbox&&) noexcept;
  MariadbOutbox& operator=(MariadbOutbox&&) noexcept;

  Result<EventId> add(st_mysql* connection, const NewEvent& event) const;
  Result<EventId> add(st_mysql* connection, const NewEvent& event, const IdempotencyKey& key) const;
  Result<std::vector<EventId>> add_all(st_mysql* connection,
                                       std::span<const NewEvent> events) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Receipts of messages. The contract stands in postrider/inbox.hpp, the errors at `MariadbOutbox`.
///
/// Blocking: until an open transaction that has recorded the same message has ended.
/// Thread safety: any thread, each with a connection of its own.
class MariadbInbox {
 public:
  explicit MariadbInbox(SchemaNames names = {}) : names_(std::move(names)) {}

  /// Records the message: `processed` when the effect is now to be written, in this transaction.
  Result<InboxResult> claim(st_mysql* connection, const InboxMessage& message) const;

  template <class Handler>
  Result<InboxResult> process(st_mysql* connection, const InboxMessage& message,
                              Handler&& handler) const {
    return process_in(*this, connection, message, std::forward<Handler>(handler));
  }

 private:
  SchemaNames names_;
};

/// A transaction that ends with its object: rolled back, unless it was committed.
///
/// Requires: the connection outlives it and is used by one thread at a time.
class MariadbTransaction {
 public:
  /// START TRANSACTION, at the session's isolation level. Errors: `invalid_argument` when a
  /// transaction is open already.
  [[nodiscard]] static Result<MariadbTransaction> begin(st_mysql* connection);

  ~MariadbTransaction();
  MariadbTransaction(MariadbTransaction&& other) noexcept
      : connection_(std::exchange(other.connection_, nullptr)) {}
  MariadbTransaction& operator=(MariadbTransaction&&) = delete;

  /// Errors: `commit_unknown` when no answer came: connect again and look for the event by its id
  ///   before the work is repeated. `no_transaction` when somebody else has ended it: a statement
  ///   that commits by itself (CREATE, ALTER, …), or a deadlock whose error was not returned. After
  ///   any error it is rolled back as far as we can tell.
  Result<void> commit();
  /// Idempotent; nothing after `commit`.
  void roll_back() noexcept;

 private:
  explicit MariadbTransaction(st_mysql* connection) : connection_(connection) {}

  st_mysql* connection_;
};

/// Runs `work()` in a transaction; see postrider/transaction.hpp for how it ends.
template <class Work>
auto transaction(st_mysql* connection, Work&& work) {
  return complete_transaction(MariadbTransaction::begin(connection), std::forward<Work>(work));
}

/// Runs `work(Outbox&)` in a transaction.
template <class Work>
auto unit_of_work(st_mysql* connection, const MariadbOutbox& outbox, Work&& work) {
  return complete_unit(MariadbTransaction::begin(connection), BoundOutbox(outbox, connection),
                       std::forward<Work>(work));
}

/// The same with default options.
template <class Work>
auto unit_of_work(st_mysql* connection, Work&& work) {
  return unit_of_work(connection, MariadbOutbox(), std::forward<Work>(work));
}

}  // namespace postrider
