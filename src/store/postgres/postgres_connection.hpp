#pragma once
/// \file
/// One connection to PostgreSQL: opened when needed, never blocking beyond a deadline, statements
/// prepared by name and sent as pipelines.
///
/// Every exchange is one round trip: everything is sent before the first answer is read. It is kept
/// in libpq's pipeline mode from the start.
///
/// Ownership: the object owns the connection and closes it.
/// Thread safety: one thread at a time.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/result.hpp>
#include <postrider/store/postgres.hpp>

#include "store/postgres/postgres_errors.hpp"
#include "store/postgres/postgres_values.hpp"

struct pg_conn;

namespace postrider::store::postgres {

/// One execution of a statement of sql/*.sql.
struct Call {
  std::string_view statement;
  Parameters parameters = {};
};

/// What a connection is for.
enum class Use : std::uint8_t {
  relay,   ///< reads and writes on the primary, with plans that keep their form
  people,  ///< reading is allowed on a standby too
  schema,  ///< migrations
};

/// The server that rows and transaction numbers belong to.
struct ServerIdentity {
  std::string system;  ///< its system identifier
  std::int32_t timeline = 0;
  friend bool operator==(const ServerIdentity&, const ServerIdentity&) = default;
};

class PostgresConnection {
 public:
  PostgresConnection(PostgresOptions options, Use use);
  ~PostgresConnection();
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  [[nodiscard]] const PostgresOptions& options() const noexcept { return options_; }

  /// From now on every session takes the advisory lock `key`, which ends with it: others see at
  /// once that it is gone.
  void use_session_lock(std::int32_t key) { lock_key_ = key; }
  /// The key, when the session of now holds the lock. None behind a pooler, whose sessions live
  /// longer than ours, and while an earlier session of ours is not gone yet.
  Result<std::optional<std::int32_t>> session_lock(Deadline deadline);

  /// Connects when there is no connection, or when the one there is was closed by the other side.
  /// Errors: also when it leads to another server than `hold_to` allows.
  Result<void> open(Deadline deadline);
  void close() noexcept;
  /// From now on only this server is spoken to; with none, any.
  void hold_to(std::optional<ServerIdentity> server) { held_to_ = std::move(server); }

  /// Runs each call in a transaction of its own, all in one round trip; between `begin` and
  /// `commit` in that one. For reading.
  Result<std::vector<Rows>> read(std::span<const Call> calls, Deadline deadline);
  /// Runs all calls in one transaction, in one round trip, with the server's timeouts set from
  /// `deadline`. A failure costs a second one for the rollback.
  Result<std::vector<Rows>> write(std::span<const Call> calls, Deadline deadline);

  /// A transaction with decisions in between: `begin`, any number of `run` and `run_script`,
  /// `commit`. After an error it is rolled back.
  Result<void> begin(Deadline deadline);
  Result<std::vector<Rows>> run(std::span<const Call> calls, Deadline deadline);
  Result<void> run_script(std::string_view sql, std::string_view doing, Deadline deadline);
  Result<void> commit(Deadline deadline);
  void rollback(Deadline deadline);

  /// Waits until the server tells something on a channel that this session listens to, and returns
  /// what was said; with nothing said, `wake` can be read or the deadline has passed.
  /// Errors: `unavailable` when the connection is gone, and what was said with it.
  Result<std::vector<std::string>> await_notification(int wake, Deadline deadline);

  /// Requires: `open` has succeeded.
  [[nodiscard]] const ServerIdentity& identity() const noexcept { return identity_; }
  /// With the schema that an empty one stands for. Requires: `open` has succeeded.
  [[nodiscard]] const SchemaNames& names() const noexcept { return names_; }
  /// The server's process as the other side announced it, which a pooler makes up. Requires: `open`
  /// has succeeded.
  [[nodiscard]] int announced_pid() const noexcept;
  /// DETAIL of the last error that the server answered; our own functions put ids there.
  [[nodiscard]] const std::string& error_detail() const noexcept { return error_detail_; }

 private:
  enum class Syncs : std::uint8_t { after_each, at_end };
  struct Answer;

  Result<void> connect(Deadline deadline);
  Result<void> prepare_session(Deadline deadline);
  Result<void> adopt_session(const Rows& session);
  Result<void> lock_session(Deadline deadline);
  [[nodiscard]] bool closed_by_server();
  [[nodiscard]] std::vector<std::string> notifications();
  [[nodiscard]] Result<void> check_server() const;
  [[nodiscard]] bool in_transaction() const;

  Result<std::vector<Rows>> exchange(std::span<const Call> calls, Syncs syncs, Deadline deadline);
  [[nodiscard]] bool send(std::span<const Call> calls, Syncs syncs, std::vector<Answer>& awaited);
  Result<std::vector<Rows>> receive(const std::vector<Answer>& awaited, Stage when_lost,
                                    Deadline deadline);
  /// Waits until the next result is there. Errors: a lost connection or a passed deadline, after
  /// which the connection is closed.
  Result<void> await_result(std::string_view doing, Stage when_lost, Deadline deadline);
  Error take_error(pg_result* result, std::string_view doing, Stage stage, Stage when_lost);
  Error lost(std::string_view doing, Stage stage);
  [[nodiscard]] std::string render(std::string_view statement) const;

  PostgresOptions options_;
  Use use_;
  std::unique_ptr<pg_conn, void (*)(pg_conn*)> connection_;
  std::set<std::string, std::less<>> prepared_;
  ServerIdentity identity_;
  std::optional<ServerIdentity> held_to_;
  SchemaNames names_;
  std::optional<std::int32_t> lock_key_;
  bool locked_ = false;
  std::string error_detail_;
};

}  // namespace postrider::store::postgres
