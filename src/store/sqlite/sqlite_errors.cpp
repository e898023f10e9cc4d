#include "store/sqlite/sqlite_errors.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>

namespace postrider::store::sqlite {
namespace {

using enum ErrorCode;
using enum Disposition;

constexpr std::string_view wait_and_repeat =
    "Try again; if it stays, look for a long transaction of another program.";
constexpr std::string_view repeat_transaction = "Repeat the whole transaction.";
constexpr std::string_view report_defect = "This is a defect of Postrider: please report it.";
constexpr std::string_view look_at_disk =
    "Look at the disk and the kernel log, check the file with PRAGMA integrity_check, then "
    "restart.";
constexpr std::string_view restore = "Restore the file from a backup, or use the .recover command.";
constexpr std::string_view make_writable = "Make the file, its folder and its mount writable.";
constexpr std::string_view open_path = "Check the path and the permissions of file and folder.";
constexpr std::string_view keep_rule = "Change the row so that it keeps the rule that is named.";
constexpr std::string_view migrate = "Run `postrider migrate`.";

// A code that has no row of its own falls back to the row of its primary code (its low byte).
constexpr std::array rows = {
    ErrorRow{SQLITE_ERROR, "SQLITE_ERROR", internal, stop, report_defect},
    ErrorRow{SQLITE_INTERNAL, "SQLITE_INTERNAL", internal, stop, report_defect},
    ErrorRow{SQLITE_PERM, "SQLITE_PERM", permission_denied, stop, open_path},
    ErrorRow{SQLITE_ABORT, "SQLITE_ABORT", conflict, retry, repeat_transaction},
    ErrorRow{SQLITE_BUSY, "SQLITE_BUSY", busy, retry, wait_and_repeat},
    ErrorRow{SQLITE_LOCKED, "SQLITE_LOCKED", busy, retry, wait_and_repeat},
    ErrorRow{SQLITE_NOMEM, "SQLITE_NOMEM", unavailable, retry,
             "Give the process more memory, or make the batch smaller."},
    ErrorRow{SQLITE_READONLY, "SQLITE_READONLY", primary_not_writable, stop, make_writable},
    ErrorRow{SQLITE_INTERRUPT, "SQLITE_INTERRUPT", timeout, retry, "Try again with more time."},
    ErrorRow{SQLITE_IOERR, "SQLITE_IOERR", storage_failed, stop, look_at_disk},
    ErrorRow{SQLITE_CORRUPT, "SQLITE_CORRUPT", storage_failed, stop, restore},
    ErrorRow{SQLITE_FULL, "SQLITE_FULL", storage_failed, retry,
             "Free space on the disk, or raise the database's max_page_count."},
    ErrorRow{SQLITE_CANTOPEN, "SQLITE_CANTOPEN", unavailable, stop, open_path},
    ErrorRow{SQLITE_PROTOCOL, "SQLITE_PROTOCOL", busy, retry, wait_and_repeat},
    ErrorRow{SQLITE_SCHEMA, "SQLITE_SCHEMA", conflict, retry, repeat_transaction},
    ErrorRow{SQLITE_TOOBIG, "SQLITE_TOOBIG", limit_exceeded, reject, "Make the value smaller."},
    ErrorRow{SQLITE_CONSTRAINT, "SQLITE_CONSTRAINT", invalid_argument, reject, keep_rule},
    ErrorRow{SQLITE_MISMATCH, "SQLITE_MISMATCH", invalid_argument, reject,
             "Give the value the type of its column."},
    ErrorRow{SQLITE_MISUSE, "SQLITE_MISUSE", internal, stop, report_defect},
    ErrorRow{SQLITE_AUTH, "SQLITE_AUTH", permission_denied, stop,
             "Let the application's authorizer permit Postrider's tables."},
    ErrorRow{SQLITE_RANGE, "SQLITE_RANGE", internal, stop, report_defect},
    ErrorRow{SQLITE_NOTADB, "SQLITE_NOTADB", storage_failed, stop,
             "Check the path: the file is no SQLite database, or it is encrypted."},
    ErrorRow{SQLITE_BUSY_RECOVERY, "SQLITE_BUSY_RECOVERY", busy, retry, wait_and_repeat},
    ErrorRow{SQLITE_LOCKED_SHAREDCACHE, "SQLITE_LOCKED_SHAREDCACHE", busy, retry, wait_and_repeat},
    // The write lock was asked for after a read: waiting cannot help, the snapshot is old for good.
    ErrorRow{SQLITE_BUSY_SNAPSHOT, "SQLITE_BUSY_SNAPSHOT", conflict, retry,
             "Repeat the whole transaction, and begin it with BEGIN IMMEDIATE."},
    ErrorRow{SQLITE_ABORT_ROLLBACK, "SQLITE_ABORT_ROLLBACK", conflict, retry, repeat_transaction},
    ErrorRow{SQLITE_CONSTRAINT_CHECK, "SQLITE_CONSTRAINT_CHECK", invalid_argument, reject,
             keep_rule},
    ErrorRow{SQLITE_READONLY_RECOVERY, "SQLITE_READONLY_RECOVERY", primary_not_writable, stop,
             make_writable},
    ErrorRow{SQLITE_IOERR_FSYNC, "SQLITE_IOERR_FSYNC", storage_failed, stop, look_at_disk},
    ErrorRow{SQLITE_IOERR_DIR_FSYNC, "SQLITE_IOERR_DIR_FSYNC", storage_failed, stop, look_at_disk},
    ErrorRow{SQLITE_READONLY_DBMOVED, "SQLITE_READONLY_DBMOVED", storage_failed, stop,
             "The file was moved or replaced while in use: put it back and restart."},
    ErrorRow{SQLITE_CONSTRAINT_FOREIGNKEY, "SQLITE_CONSTRAINT_FOREIGNKEY", not_found, reject,
             "Check that the event still exists, and that nothing refers to what is deleted."},
    ErrorRow{SQLITE_CONSTRAINT_NOTNULL, "SQLITE_CONSTRAINT_NOTNULL", invalid_argument, reject,
             keep_rule},
    ErrorRow{SQLITE_CONSTRAINT_PRIMARYKEY, "SQLITE_CONSTRAINT_PRIMARYKEY", already_exists, reject,
             "Use another key; nothing was written."},
    ErrorRow{SQLITE_CONSTRAINT_TRIGGER, "SQLITE_CONSTRAINT_TRIGGER", invalid_argument, reject,
             keep_rule},
    ErrorRow{SQLITE_CONSTRAINT_UNIQUE, "SQLITE_CONSTRAINT_UNIQUE", already_exists, reject,
             "Use another key; nothing was written."},
    ErrorRow{SQLITE_CONSTRAINT_ROWID, "SQLITE_CONSTRAINT_ROWID", already_exists, reject,
             "Use another key; nothing was written."},
    ErrorRow{SQLITE_IOERR_NOMEM, "SQLITE_IOERR_NOMEM", unavailable, retry,
             "Give the process more memory, or make the batch smaller."},
    ErrorRow{SQLITE_IOERR_LOCK, "SQLITE_IOERR_LOCK", unavailable, retry,
             "Try again; if it stays, the file system has no working locks: use a local disk."},
};

const ErrorRow* find_row(int native) noexcept {
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const ErrorRow& each) { return each.native == native; });
  return row == rows.end() ? nullptr : row;
}

/// SQLite tells a missing table or column only in words.
bool names_missing_schema(int native, std::string_view detail) noexcept {
  if (native != SQLITE_ERROR) return false;
  return detail.starts_with("no such table") || detail.starts_with("no such column") ||
         detail.find("has no column named") != std::string_view::npos;
}

Error make(ErrorCode code, Disposition disposition, std::string_view doing, std::string_view detail,
           std::string_view advice, int native) {
  return {code, disposition, fmt::format("{}: {}. {}", doing, detail, advice), "sqlite",
          std::to_string(native)};
}

}  // namespace

std::span<const ErrorRow> error_rows() noexcept {
  return rows;
}

Error sqlite_error(int extended_code, std::string_view doing, std::string_view detail,
                   Phase phase) {
  if (names_missing_schema(extended_code, detail)) {
    return make(schema_mismatch, stop, doing, detail, migrate, extended_code);
  }
  const ErrorRow* row = find_row(extended_code);
  if (row == nullptr) row = find_row(extended_code & 0xff);
  if (row != nullptr) {
    return make(row->code, row->disposition, doing, detail, row->advice, extended_code);
  }
  if (phase == Phase::commit) {
    return make(commit_unknown, in_doubt, doing, detail,
                "Look whether it happened before you repeat it.", extended_code);
  }
  return make(protocol, retry, doing, detail, "Try again; if it stays, report the code.",
              extended_code);
}

}  // namespace postrider::store::sqlite
