#pragma once
/// \file
/// For applications on PostgreSQL with libpq: events and receipts inside a transaction of their own
/// `PGconn*` (`pg_conn*` to the compiler).
///
///     postrider::PostgresOutbox outbox;
///     auto placed = postrider::transaction(connection, [&]() -> postrider::Result<…> {
///       … INSERT INTO orders …
///       return outbox.add(connection, event);
///     });
///     if (!placed && placed.error().code == postrider::ErrorCode::commit_unknown) {
///       … connect again, then ask: resolve_commit(connection, *commit_ticket(placed.error()))
///     }
///
/// Ownership: a connection is borrowed for the length of the call; nothing is left prepared on it.
/// Blocking: calls wait for the server as PQexec does. A connection with `tcp_user_timeout` does
///   not wait for ever when the network is gone.
/// Thread safety: `PostgresOutbox` may be shared by threads that each have a connection of their
/// own.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <postrider/inbox.hpp>
#include <postrider/outbox.hpp>
#include <postrider/postgres_driver.hpp>
#include <postrider/transaction.hpp>

struct pg_conn;

namespace postrider {

/// Writes events. The contract stands at `Outbox`.
///
/// Errors: besides, `conflict` (deadlock, serialization failure) and `busy` (lock timeout): roll
///   back and repeat the whole transaction. `invalid_argument` when a command still runs on the
///   connection or it is in pipeline mode; `unsupported` when `client_encoding` is not UTF8.
/// Cost: one round trip, two with a key or with several aggregates.
class PostgresOutbox {
 public:
  explicit PostgresOutbox(OutboxOptions options = {});
  ~PostgresOutbox();
  PostgresOutbox(PostgresOutbox&&) noexcept;
  PostgresOutbox& operator=(PostgresOutbox&&) noexcept;

  Result<EventId> add(pg_conn* connection, const NewEvent& event) const;
  Result<EventId> add(pg_conn* connection, const NewEvent& event, const IdempotencyKey& key) const;
  Result<std::vector<EventId>> add_all(pg_conn* connection, std::span<const NewEvent> events) const;

  /// The same through another driver.
  Result<EventId> add(PostgresDriver& driver, const NewEvent& event) const;
  Result<EventId> add(PostgresDriver& driver, const NewEvent& event,
                      const IdempotencyKey& key) const;
  Result<std::vector<EventId>> add_all(PostgresDriver& driver,
                                       std::span<const NewEvent> events) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Receipts of messages. The contract stands in postrider/inbox.hpp, the errors at
/// `PostgresOutbox`.
///
/// Blocking: until an open transaction that has recorded the same message has ended.
/// Thread safety: any thread, each with a connection of its own.
class PostgresInbox {
 public:
  explicit PostgresInbox(SchemaNames names = {}) : names_(std::move(names)) {}

  /// Records the message: `processed` when the effect is now to be written, in this transaction.
  Result<InboxResult> claim(pg_conn* connection, const InboxMessage& message) const;
  Result<InboxResult> claim(PostgresDriver& driver, const InboxMessage& message) const;

  template <class Handler>
  Result<InboxResult> process(pg_conn* connection, const InboxMessage& message,
                              Handler&& handler) const {
    return process_in(*this, connection, message, std::forward<Handler>(handler));
  }

 private:
  SchemaNames names_;
};

/// What identifies a transaction after its connection is gone.
struct CommitTicket {
  std::uint64_t xid = 0;  ///< PostgreSQL's xid8
  std::string server;     ///< system identifier and timeline: "7312…/1"
  friend bool operator==(const CommitTicket&, const CommitTicket&) = default;
};

/// One line for logs: "xid 7431 on 7312…/1".
[[nodiscard]] std::string to_string(const CommitTicket& ticket);

/// The ticket that a `commit_unknown` of `PostgresTransaction` carries in its `native_code`.
/// Errors: `not_found` when the error carries none.
[[nodiscard]] Result<CommitTicket> commit_ticket(const Error& error);

enum class CommitState : std::uint8_t {
  committed,
  aborted,
  open,  ///< the server has not noticed yet that the connection is gone: ask again
};

/// Asks what became of a transaction whose COMMIT was not answered. `connection` is a new one to
/// the same server, without an open transaction.
///
/// Only if the server itself crashed in between, a transaction of which nothing had reached its
/// disk leaves its number to another one; who cannot live with that looks for the event's id as
/// well.
///
/// Errors: `commit_unknown` when this server cannot know: another one, another timeline after a
///   failover, or a transaction too old. Look for the event by its id.
[[nodiscard]] Result<CommitState> resolve_commit(pg_conn* connection, const CommitTicket& ticket);

/// A transaction that ends with its object: rolled back, unless it was committed.
///
/// Requires: the connection outlives it and is used by one thread at a time.
class PostgresTransaction {
 public:
  /// BEGIN, at the session's isolation level, and takes the number that `ticket` holds, in one
  /// round trip. Errors: `invalid_argument` when a transaction is open already.
  [[nodiscard]] static Result<PostgresTransaction> begin(pg_conn* connection);

  ~PostgresTransaction();
  PostgresTransaction(PostgresTransaction&& other) noexcept
      : connection_(std::exchange(other.connection_, nullptr)), ticket_(std::move(other.ticket_)) {}
  PostgresTransaction& operator=(PostgresTransaction&&) = delete;

  [[nodiscard]] const CommitTicket& ticket() const noexcept { return ticket_; }

  /// Errors: `commit_unknown` when no answer came, with the ticket: never run the work again before
  ///   `resolve_commit` has answered. `no_transaction` when a statement failed and nobody told, or
  ///   somebody else has ended it. After any error it is rolled back as far as we can tell.
  Result<void> commit();
  /// Idempotent; nothing after `commit`.
  void roll_back() noexcept;

 private:
  PostgresTransaction(pg_conn* connection, CommitTicket ticket)
      : connection_(connection), ticket_(std::move(ticket)) {}

  pg_conn* connection_;
  CommitTicket ticket_;
};

/// Runs `work()` in a transaction; see postrider/transaction.hpp for how it ends.
template <class Work>
auto transaction(pg_conn* connection, Work&& work) {
  return complete_transaction(PostgresTransaction::begin(connection), std::forward<Work>(work));
}

/// Runs `work(Outbox&)` in a transaction.
template <class Work>
auto unit_of_work(pg_conn* connection, const PostgresOutbox& outbox, Work&& work) {
  return complete_unit(PostgresTransaction::begin(connection), BoundOutbox(outbox, connection),
                       std::forward<Work>(work));
}

/// The same with default options.
template <class Work>
auto unit_of_work(pg_conn* connection, Work&& work) {
  return unit_of_work(connection, PostgresOutbox(), std::forward<Work>(work));
}

}  // namespace postrider
