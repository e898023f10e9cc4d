#pragma once
/// \file
/// A connection of the application, borrowed for one call inside its open transaction.
///
/// Nothing of the handle is changed, and nothing is left prepared on it, as a statement that is not
/// finalized keeps the application from closing its handle.
///
/// Thread safety: that of the handle.

#include <map>
#include <memory>
#include <string_view>

#include <postrider/result.hpp>
#include <postrider/schema.hpp>

#include "store/sqlite/sqlite_connection.hpp"

namespace postrider::store::sqlite {

class BorrowedSqlite final : private SqliteFailures {
 public:
  /// `names` must outlive it.
  BorrowedSqlite(sqlite3* database, const SchemaNames& names)
      : database_(database), names_(&names) {}
  BorrowedSqlite(const BorrowedSqlite&) = delete;
  BorrowedSqlite& operator=(const BorrowedSqlite&) = delete;

  /// Tells whether rows may be written that must be durable with the commit. Errors: see
  /// `SqliteOutbox`.
  Result<void> check_transaction();

  /// `statement` is a constant of store_sqlite_sql.hpp; it is prepared once.
  SqliteQuery query(std::string_view statement);
  /// Rows that the last INSERT wrote, without those of triggers.
  [[nodiscard]] std::int64_t changes() const;

  /// Runs `body`, which returns a Result, so that its error takes back all that it wrote.
  template <class Body>
  std::invoke_result_t<Body> all_or_nothing(Body body) {
    if (auto begun = execute("SAVEPOINT postrider"); !begun) return std::move(begun).error();
    auto result = body();
    if (!result) {
      // Some errors have ended the whole transaction already, and then there is nothing to go back
      // to: the first error is the one to be told.
      static_cast<void>(execute("ROLLBACK TO postrider"));
    }
    auto ended = execute("RELEASE postrider");
    if (result.ok() && !ended) return std::move(ended).error();
    return result;
  }

 private:
  struct FinalizeStatement {
    void operator()(sqlite3_stmt* statement) const noexcept;
  };

  Result<void> check_synchronous();
  Result<void> execute(const char* sql);
  Error failure(int code, std::string_view doing, Phase phase) override;

  sqlite3* database_;
  const SchemaNames* names_;
  std::map<std::string_view, std::unique_ptr<sqlite3_stmt, FinalizeStatement>> prepared_;
};

}  // namespace postrider::store::sqlite
