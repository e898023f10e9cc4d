#pragma once
/// \file
/// A connection of the application, borrowed for one call inside its open transaction.
///
/// Nothing of the session is changed and nothing is assumed of it: values are hexadecimal literals,
/// which mean the same under every character set and sql_mode.
///
/// Thread safety: that of the handle.

#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include <postrider/result.hpp>
#include <postrider/schema.hpp>

#include "store/mariadb/mariadb_errors.hpp"
#include "store/mariadb/mariadb_query.hpp"

struct st_mysql;

namespace postrider::store::mariadb {

/// Whether the session is in a transaction, also one that nothing was read or written in yet.
/// Requires: the connection is not null.
[[nodiscard]] bool in_transaction(st_mysql* connection);

/// Runs a statement without parameters and without rows on an application's connection.
Result<void> run_plain(st_mysql* connection, const char* sql, Phase phase);

class BorrowedMariadb final : private Executor {
 public:
  /// `names` must outlive it.
  BorrowedMariadb(st_mysql* connection, const SchemaNames& names)
      : connection_(connection), names_(&names) {}
  BorrowedMariadb(const BorrowedMariadb&) = delete;
  BorrowedMariadb& operator=(const BorrowedMariadb&) = delete;

  /// Errors: `invalid_argument` without a connection, `no_transaction`.
  Result<void> check_transaction();

  /// `statement` is a constant of store_mariadb_sql.hpp.
  MariadbQuery query(std::string_view statement);
  /// Rows that the last INSERT wrote.
  [[nodiscard]] std::int64_t changes() const { return changes_; }

  /// Runs `body`, which returns a Result, so that its error takes back all that it wrote.
  template <class Body>
  std::invoke_result_t<Body> all_or_nothing(Body body) {
    if (auto begun = run_plain(connection_, "SAVEPOINT postrider", Phase::ordinary); !begun) {
      return std::move(begun).error();
    }
    auto result = body();
    if (!result) {
      // Some errors have ended the whole transaction already, and then there is nothing to go back
      // to: the first error is the one to be told.
      static_cast<void>(run_plain(connection_, "ROLLBACK TO SAVEPOINT postrider", Phase::ordinary));
    }
    auto ended = run_plain(connection_, "RELEASE SAVEPOINT postrider", Phase::ordinary);
    if (result.ok() && !ended) return std::move(ended).error();
    return result;
  }

 private:
  Result<ResultRows> execute(const std::string& sql, std::string_view doing) override;
  [[nodiscard]] Quoting quoting() const override { return Quoting::hexadecimal; }
  Result<void> check_size(const std::string& sql, std::string_view doing);

  st_mysql* connection_;
  const SchemaNames* names_;
  std::unordered_map<const char*, std::string> rendered_;
  std::int64_t changes_ = 0;
};

}  // namespace postrider::store::mariadb
