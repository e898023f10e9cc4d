// One row per line of the table from SQLite's result codes to ours.

#include "store/sqlite/sqlite_errors.hpp"

#include <gmock/gmock.h>
#include <sqlite3.h>

#include <map>

namespace postrider::store::sqlite {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

struct Row {
  int native;
  ErrorCode code;
  Disposition disposition;
};

// Written down a second time on purpose: a change of the table has to be made twice.
const Row expected_rows[] = {
    {SQLITE_ERROR, ErrorCode::internal, Disposition::stop},
    {SQLITE_INTERNAL, ErrorCode::internal, Disposition::stop},
    {SQLITE_PERM, ErrorCode::permission_denied, Disposition::stop},
    {SQLITE_ABORT, ErrorCode::conflict, Disposition::retry},
    {SQLITE_BUSY, ErrorCode::busy, Disposition::retry},
    {SQLITE_LOCKED, ErrorCode::busy, Disposition::retry},
    {SQLITE_NOMEM, ErrorCode::unavailable, Disposition::retry},
    {SQLITE_READONLY, ErrorCode::primary_not_writable, Disposition::stop},
    {SQLITE_INTERRUPT, ErrorCode::timeout, Disposition::retry},
    {SQLITE_IOERR, ErrorCode::storage_failed, Disposition::stop},
    {SQLITE_CORRUPT, ErrorCode::storage_failed, Disposition::stop},
    {SQLITE_FULL, ErrorCode::storage_failed, Disposition::retry},
    {SQLITE_CANTOPEN, ErrorCode::unavailable, Disposition::stop},
    {SQLITE_PROTOCOL, ErrorCode::busy, Disposition::retry},
    {SQLITE_SCHEMA, ErrorCode::conflict, Disposition::retry},
    {SQLITE_TOOBIG, ErrorCode::limit_exceeded, Disposition::reject},
    {SQLITE_CONSTRAINT, ErrorCode::invalid_argument, Disposition::reject},
    {SQLITE_MISMATCH, ErrorCode::invalid_argument, Disposition::reject},
    {SQLITE_MISUSE, ErrorCode::internal, Disposition::stop},
    {SQLITE_AUTH, ErrorCode::permission_denied, Disposition::stop},
    {SQLITE_RANGE, ErrorCode::internal, Disposition::stop},
    {SQLITE_NOTADB, ErrorCode::storage_failed, Disposition::stop},
    {SQLITE_BUSY_RECOVERY, ErrorCode::busy, Disposition::retry},
    {SQLITE_LOCKED_SHAREDCACHE, ErrorCode::busy, Disposition::retry},
    {SQLITE_BUSY_SNAPSHOT, ErrorCode::conflict, Disposition::retry},
    {SQLITE_ABORT_ROLLBACK, ErrorCode::conflict, Disposition::retry},
    {SQLITE_CONSTRAINT_CHECK, ErrorCode::invalid_argument, Disposition::reject},
    {SQLITE_READONLY_RECOVERY, ErrorCode::primary_not_writable, Disposition::stop},
    {SQLITE_IOERR_FSYNC, ErrorCode::storage_failed, Disposition::stop},
    {SQLITE_IOERR_DIR_FSYNC, ErrorCode::storage_failed, Disposition::stop},
    {SQLITE_READONLY_DBMOVED, ErrorCode::storage_failed, Disposition::stop},
    {SQLITE_CONSTRAINT_FOREIGNKEY, ErrorCode::not_found, Disposition::reject},
    {SQLITE_CONSTRAINT_NOTNULL, ErrorCode::invalid_argument, Disposition::reject},
    {SQLITE_CONSTRAINT_PRIMARYKEY, ErrorCode::already_exists, Disposition::reject},
    {SQLITE_CONSTRAINT_TRIGGER, ErrorCode::invalid_argument, Disposition::reject},
    {SQLITE_CONSTRAINT_UNIQUE, ErrorCode::already_exists, Disposition::reject},
    {SQLITE_CONSTRAINT_ROWID, ErrorCode::already_exists, Disposition::reject},
    {SQLITE_IOERR_NOMEM, ErrorCode::unavailable, Disposition::retry},
    {SQLITE_IOERR_LOCK, ErrorCode::unavailable, Disposition::retry},
};

TEST(SqliteErrors, Every_code_means_what_the_table_says) {
  for (const auto& row : expected_rows) {
    SCOPED_TRACE(row.native);
    const auto error = sqlite_error(row.native, "commit", "some words");

    EXPECT_EQ(error.code, row.code);
    EXPECT_EQ(error.disposition, row.disposition);
    EXPECT_EQ(error.origin, "sqlite");
    EXPECT_EQ(error.native_code, std::to_string(row.native));
  }
}

TEST(SqliteErrors, Every_row_of_the_table_is_tested) {
  std::map<int, int> rows;
  for (const auto& row : error_rows())
    ++rows[row.native];
  for (const auto& row : expected_rows)
    --rows[row.native];
  for (const auto& [native, difference] : rows)
    EXPECT_EQ(difference, 0) << native;
}

TEST(SqliteErrors, Messages_name_the_call_and_end_with_what_to_do) {
  for (const auto& row : error_rows()) {
    const auto error = sqlite_error(row.native, "commit", "some words");
    EXPECT_THAT(error.message, HasSubstr("commit: some words. "));
    EXPECT_THAT(error.message, EndsWith(std::string(row.advice)));
    EXPECT_THAT(row.advice, EndsWith("."));
  }
}

TEST(SqliteErrors, A_code_without_a_row_falls_back_to_its_primary_code) {
  const auto error = sqlite_error(SQLITE_IOERR_SHORT_READ, "read", "disk I/O error");
  EXPECT_EQ(error.code, ErrorCode::storage_failed);
  EXPECT_EQ(error.native_code, std::to_string(SQLITE_IOERR_SHORT_READ));
}

TEST(SqliteErrors, An_unknown_code_is_in_doubt_on_commit_and_retried_elsewhere) {
  const int unknown = 99;
  const auto ordinary = sqlite_error(unknown, "read", "words");
  const auto commit = sqlite_error(unknown, "commit", "words", Phase::commit);

  EXPECT_EQ(ordinary.code, ErrorCode::protocol);
  EXPECT_EQ(ordinary.disposition, Disposition::retry);
  EXPECT_EQ(commit.code, ErrorCode::commit_unknown);
  EXPECT_EQ(commit.disposition, Disposition::in_doubt);
}

TEST(SqliteErrors, A_missing_table_or_column_asks_for_a_migration) {
  for (const auto* words : {"no such table: outbox_events", "no such column: e.slot",
                            "table outbox_events has no column named slot"}) {
    const auto error = sqlite_error(SQLITE_ERROR, "SELECT", words);
    EXPECT_EQ(error.code, ErrorCode::schema_mismatch) << words;
    EXPECT_EQ(error.disposition, Disposition::stop);
    EXPECT_THAT(error.message, HasSubstr("postrider migrate"));
  }
}

}  // namespace
}  // namespace postrider::store::sqlite
