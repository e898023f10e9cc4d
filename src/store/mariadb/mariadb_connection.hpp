#pragma once
/// \file
/// One connection to MariaDB: opened when needed, never blocking beyond a deadline.
///
/// Waiting is ours: the client library is used in its non-blocking form and the socket is polled.
/// A call that is cut by its deadline closes the connection, and the server ends the statement by
/// itself a little later (max_statement_time), so that no lock outlives it for long.
///
/// Session: utf8mb4, READ COMMITTED (no locks on gaps), strict mode, UTC.
///
/// Ownership: the object owns the connection and closes it.
/// Thread safety: one thread at a time.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include <postrider/clock.hpp>
#include <postrider/result.hpp>
#include <postrider/store/mariadb.hpp>

#include "store/mariadb/mariadb_errors.hpp"
#include "store/mariadb/mariadb_query.hpp"

struct st_mysql;

namespace postrider::store::mariadb {

class MariadbConnection final : private Executor {
 public:
  explicit MariadbConnection(MariadbOptions options);
  ~MariadbConnection();
  MariadbConnection(const MariadbConnection&) = delete;
  MariadbConnection& operator=(const MariadbConnection&) = delete;

  /// Connects when there is no connection, or when the one there is was closed by the other side.
  /// Until the next call, waiting ends at `deadline`.
  Result<void> ready(Deadline deadline);

  /// `statement` is a constant of store_mariadb_sql.hpp.
  MariadbQuery query(std::string_view statement);
  /// A statement with its names filled in; `doing` is for messages.
  Result<void> run_text(const std::string& sql, std::string_view doing);
  /// Rows that the last INSERT, UPDATE or DELETE found; an INSERT that changed a row counts 2.
  [[nodiscard]] std::int64_t changes() const { return changes_; }

  /// Runs `body`, which returns a Result, in one transaction; its error rolls back. After a
  /// deadlock all of it is repeated, so `body` starts anew each time.
  template <class Body>
  std::invoke_result_t<Body> write(Deadline deadline, Body body) {
    for (int repeats = 0;; ++repeats) {
      auto result = transaction("START TRANSACTION", Phase::commit, deadline, body);
      const bool in_conflict = !result && result.error().code == ErrorCode::conflict &&
                               result.error().disposition == Disposition::retry;
      if (!in_conflict || repeats == most_repeats || deadline.passed()) return result;
    }
  }
  /// The same on one snapshot, for reading alone.
  template <class Body>
  std::invoke_result_t<Body> read(Deadline deadline, Body body) {
    if (auto opened = ready(deadline); !opened) return std::move(opened).error();
    if (auto set = run_text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "begin"); !set) {
      return std::move(set).error();
    }
    return transaction("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", Phase::ordinary,
                       deadline, std::move(body));
  }

  /// The time given, or one reading of the database's clock.
  Result<Timestamp> now(std::optional<Timestamp> given);

  /// Another number for each session, from 1 on. Requires: the connection is ready.
  [[nodiscard]] std::int64_t session() const noexcept { return session_; }

  [[nodiscard]] const MariadbOptions& options() const noexcept { return options_; }

 private:
  struct CloseHandle {
    void operator()(st_mysql* handle) const noexcept;
  };

  /// More deadlocks in a row than this are a pattern and not chance.
  static constexpr int most_repeats = 5;

  template <class Body>
  std::invoke_result_t<Body> transaction(const char* begin, Phase end, Deadline deadline,
                                         Body body) {
    if (auto opened = ready(deadline); !opened) return std::move(opened).error();
    if (auto begun = run_text(begin, "begin"); !begun) return std::move(begun).error();
    auto result = body();
    if (!result) {
      roll_back();
      return result;
    }
    if (auto committed = commit(end); !committed) return std::move(committed).error();
    return result;
  }

  Result<ResultRows> execute(const std::string& sql, std::string_view doing) override;
  [[nodiscard]] Quoting quoting() const override { return Quoting::backslashes; }

  Result<ResultRows> execute(const std::string& sql, std::string_view doing, Phase phase);
  Result<void> connect();
  Result<void> check_server();
  Result<void> ask_packet_limit();
  Result<void> limit_statements();
  Result<void> commit(Phase phase);
  void roll_back() noexcept;
  [[nodiscard]] bool closed_by_server() const;
  /// Waits for what the client library waits for; what of it has come, or nothing at the deadline.
  [[nodiscard]] std::optional<int> await(int wanted) const;
  Error failed(std::string_view doing, Phase phase);
  /// Closes without a word to the server, which would have to be waited for.
  void abandon() noexcept;

  MariadbOptions options_;
  std::unique_ptr<st_mysql, CloseHandle> handle_;
  std::unordered_map<const char*, std::string> rendered_;
  Deadline deadline_;
  std::int64_t changes_ = 0;
  std::int64_t session_ = 0;
  std::int64_t statement_limit_ms_ = 0;
  std::int64_t most_packet_bytes_ = 0;  ///< what the server takes; 0 until it has been asked
};

}  // namespace postrider::store::mariadb
