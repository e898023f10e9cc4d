#include "store/sqlite/sqlite_borrowed.hpp"

#include <sqlite3.h>

#include "store/common/sql_names.hpp"

namespace postrider::store::sqlite {
namespace {

/// PRAGMA synchronous: 0 OFF, 1 NORMAL, 2 FULL, 3 EXTRA.
constexpr std::int64_t synchronous_full = 2;

Error refused(ErrorCode code, Disposition disposition, std::string_view message) {
  return {code, disposition, std::string(message), "sqlite", ""};
}

}  // namespace

void BorrowedSqlite::FinalizeStatement::operator()(sqlite3_stmt* statement) const noexcept {
  sqlite3_finalize(statement);
}

Result<void> BorrowedSqlite::check_transaction() {
  if (database_ == nullptr) {
    return refused(ErrorCode::invalid_argument, Disposition::reject,
                   "the database handle is null. Open the database first.");
  }
  if (sqlite3_get_autocommit(database_) != 0) {
    return refused(ErrorCode::no_transaction, Disposition::reject,
                   "no transaction is open, so the event could not commit together with its data. "
                   "Begin one with BEGIN IMMEDIATE.");
  }
  if (sqlite3_txn_state(database_, "main") == SQLITE_TXN_READ) {
    return refused(ErrorCode::no_transaction, Disposition::reject,
                   "the open transaction has only read so far, and cannot write any more once "
                   "another connection has written. Begin it with BEGIN IMMEDIATE.");
  }
  return check_synchronous();
}

Result<void> BorrowedSqlite::check_synchronous() {
  auto synchronous = query("PRAGMA main.synchronous");
  if (!synchronous.next()) return synchronous.result();
  if (synchronous.integer(0) >= synchronous_full) return {};
  return refused(ErrorCode::unsupported, Disposition::stop,
                 "PRAGMA synchronous is below FULL on this connection: a power cut could take back "
                 "a commit after its event was sent. Set it to FULL before the transaction.");
}

SqliteQuery BorrowedSqlite::query(std::string_view statement) {
  auto& prepared = prepared_[statement];
  if (!prepared) {
    const auto sql = substitute_names(statement, *names_);
    sqlite3_stmt* made = nullptr;
    const int code =
        sqlite3_prepare_v3(database_, sql.data(), static_cast<int>(sql.size()), 0, &made, nullptr);
    if (code != SQLITE_OK) {
      return {*this, failure(code, statement_name(statement), Phase::ordinary)};
    }
    prepared.reset(made);
  }
  return {*this, prepared.get(), statement};
}

std::int64_t BorrowedSqlite::changes() const {
  return sqlite3_changes64(database_);
}

Result<void> BorrowedSqlite::execute(const char* sql) {
  const int code = sqlite3_exec(database_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return failure(code, sql, Phase::ordinary);
  return {};
}

Error BorrowedSqlite::failure(int code, std::string_view doing, Phase phase) {
  // The application may not have asked for extended codes.
  const int extended = sqlite3_extended_errcode(database_);
  const int exact = (extended & 0xff) == (code & 0xff) ? extended : code;
  return sqlite_error(exact, doing, sqlite3_errmsg(database_), phase);
}

}  // namespace postrider::store::sqlite
