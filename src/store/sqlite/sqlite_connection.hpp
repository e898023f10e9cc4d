#pragma once
/// \file
/// SQLite's C interface as objects that clean up after themselves: connection, query, transaction.
///
/// The first error of a query stays with it and turns every later step into nothing, so that a
/// caller binds and reads in a row and asks once at the end.
///
/// Thread safety: one thread at a time per connection and what came from it.

#include <sys/types.h>

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
#include <postrider/store/sqlite.hpp>

#include "store/sqlite/sqlite_errors.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace postrider::store::sqlite {

/// The name under which messages know a statement: that of its file, or its own text where it is a
/// pragma of this folder.
[[nodiscard]] std::string_view statement_name(std::string_view text);

/// Who turns a result code into an error, and remembers what it means for the handle.
class SqliteFailures {
 public:
  virtual Error failure(int code, std::string_view doing, Phase phase) = 0;

 protected:
  ~SqliteFailures() = default;
};

/// One run of a prepared statement.
///
/// Ownership: borrows the statement, and gives it back finished and without bindings: an unfinished
/// statement with RETURNING would make COMMIT fail.
/// Requires: a name given to `bind` stands in the statement; a column read is there.
class SqliteQuery {
 public:
  SqliteQuery(SqliteFailures& failures, sqlite3_stmt* statement, std::string_view text);
  SqliteQuery(SqliteFailures& failures, Error error);
  ~SqliteQuery();
  SqliteQuery(const SqliteQuery&) = delete;
  SqliteQuery& operator=(const SqliteQuery&) = delete;

  SqliteQuery& bind(const char* name, std::int64_t value);
  SqliteQuery& bind(const char* name, std::string_view text);
  /// Nothing leaves the parameter NULL, as every parameter is until it is bound.
  SqliteQuery& bind_if(const char* name, const std::optional<std::string>& text);
  SqliteQuery& bind_real(const char* name, double value);
  /// The bytes must outlive the query. Text is stored as TEXT, bytes as BLOB.
  SqliteQuery& bind_borrowed_text(const char* name, std::string_view text);
  SqliteQuery& bind_borrowed_bytes(const char* name, std::string_view bytes);

  /// Goes to the next row; false at the end and after an error.
  bool next();
  /// Goes to the end, whatever rows there are.
  Result<void> run();
  /// The error that made `next` say false, if it was one.
  [[nodiscard]] Result<void> result() const;

  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::optional<std::int64_t> optional_integer(int column) const;
  [[nodiscard]] double real(int column) const;
  /// TEXT and BLOB alike, with every byte; NULL is empty.
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::optional<std::string> optional_text(int column) const;
  [[nodiscard]] std::size_t size(int column) const;

 private:
  [[nodiscard]] int index_of(const char* name) const;
  void keep(int code);

  SqliteFailures* failures_;
  sqlite3_stmt* statement_ = nullptr;
  std::string_view text_;
  std::optional<Error> error_;
};

enum class Access : std::uint8_t {
  read_only,  ///< can never write, whatever it is asked
  read_write,
};

/// For whoever must not make a new file: only the migrator may.
[[nodiscard]] inline SqliteOptions without_create(SqliteOptions options) {
  options.create = false;
  return options;
}

/// A connection that opens when it is needed.
///
/// Settings: WAL, synchronous=FULL (WAL with less can lose the last commits when the power fails),
/// foreign keys on, no memory map, and no mutex of SQLite's own.
/// Errors: after a fork the child's calls are refused, as POSIX locks do not follow it. A failed
///   fsync is final for this object: what a later success would mean, nobody knows.
class SqliteConnection final : private SqliteFailures {
 public:
  SqliteConnection(SqliteOptions options, Access access);
  ~SqliteConnection();
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  /// Opens when needed. Until the next call, waiting for locks ends at `deadline`.
  Result<void> ready(Deadline deadline);

  /// `statement` is a constant of store_sqlite_sql.hpp; it is prepared once.
  SqliteQuery query(std::string_view statement);
  /// Runs statements without parameters, with names filled in.
  Result<void> run_script(std::string_view sql, std::string_view doing);
  /// Rows that the last INSERT, UPDATE or DELETE touched.
  [[nodiscard]] std::int64_t changes() const;

  /// Runs `body`, which returns a Result, in one transaction; its error rolls back.
  template <class Body>
  std::invoke_result_t<Body> write(Deadline deadline, Body body) {
    return transaction("BEGIN IMMEDIATE", deadline, std::move(body));
  }
  /// The same on one snapshot.
  template <class Body>
  std::invoke_result_t<Body> read(Deadline deadline, Body body) {
    return transaction("BEGIN DEFERRED", deadline, std::move(body));
  }

  /// The time given, or one reading of the database's clock.
  Result<Timestamp> now(std::optional<Timestamp> given);

  /// Where the write-ahead log is. Requires: the connection is ready.
  [[nodiscard]] std::string log_path() const;
  /// Changes when another connection, of this process or not, has committed. Requires: the same.
  Result<std::int64_t> data_version();

  [[nodiscard]] const SqliteOptions& options() const noexcept { return options_; }

 private:
  struct CloseDatabase {
    void operator()(sqlite3* database) const noexcept;
  };
  struct FinalizeStatement {
    void operator()(sqlite3_stmt* statement) const noexcept;
  };
  using Database = std::unique_ptr<sqlite3, CloseDatabase>;
  using Prepared = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

  template <class Body>
  std::invoke_result_t<Body> transaction(const char* begin, Deadline deadline, Body body) {
    if (auto opened = ready(deadline); !opened) return std::move(opened).error();
    if (auto begun = execute(begin, "begin a transaction"); !begun) {
      return std::move(begun).error();
    }
    auto result = body();
    if (!result) {
      roll_back();
      return result;
    }
    if (auto committed = commit(); !committed) return std::move(committed).error();
    return result;
  }

  Result<void> check_process();
  Result<void> check_options() const;
  Result<void> open();
  Result<void> configure();
  Result<void> enter_wal();
  Result<void> check_wal();
  Result<void> execute(const char* sql, std::string_view doing, Phase phase = Phase::ordinary);
  Result<void> commit();
  void roll_back() noexcept;
  void close() noexcept;
  Error failure(int code, std::string_view doing, Phase phase) override;
  static int wait_for_lock(void* self, int waits) noexcept;

  SqliteOptions options_;
  Access access_;
  Database database_;
  std::unordered_map<const char*, Prepared> prepared_;
  std::unique_ptr<Random> random_;
  Deadline deadline_;
  pid_t process_ = 0;
  bool reopen_ = false;         ///< the handle may be bad: the next call starts with a fresh one
  std::optional<Error> final_;  ///< of a failed fsync
};

}  // namespace postrider::store::sqlite
