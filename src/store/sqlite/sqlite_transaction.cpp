#include <sqlite3.h>

#include <postrider/sqlite.hpp>

#include "store/sqlite/sqlite_errors.hpp"

namespace postrider {
namespace {

using store::sqlite::Phase;
using store::sqlite::sqlite_error;

Result<void> run(sqlite3* database, const char* sql, Phase phase) {
  if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return sqlite_error(sqlite3_extended_errcode(database), sql, sqlite3_errmsg(database), phase);
}

bool is_open(sqlite3* database) {
  return sqlite3_get_autocommit(database) == 0;
}

}  // namespace

Result<SqliteTransaction> SqliteTransaction::begin(sqlite3* database) {
  if (database == nullptr || is_open(database)) {
    return Error{ErrorCode::invalid_argument, Disposition::reject,
                 database == nullptr
                     ? "the database handle is null. Open the database first."
                     : "a transaction is open on this handle already. Add to that one, or end it.",
                 "sqlite", ""};
  }
  if (auto begun = run(database, "BEGIN IMMEDIATE", Phase::ordinary); !begun) {
    return std::move(begun).error();
  }
  return SqliteTransaction(database);
}

SqliteTransaction::~SqliteTransaction() {
  roll_back();
}

Result<void> SqliteTransaction::commit() {
  if (database_ == nullptr || !is_open(database_)) {
    database_ = nullptr;
    return Error{ErrorCode::no_transaction, Disposition::reject,
                 "the transaction has ended before its commit: an error of the database rolled it "
                 "back, or the work ended it. Return the error of each statement, and leave COMMIT "
                 "and ROLLBACK to the transaction.",
                 "sqlite", ""};
  }
  auto committed = run(database_, "COMMIT", Phase::commit);
  if (!committed) roll_back();
  database_ = nullptr;
  return committed;
}

void SqliteTransaction::roll_back() noexcept {
  if (database_ != nullptr && is_open(database_)) {
    sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  database_ = nullptr;
}

}  // namespace postrider
