#pragma once
/// \file
/// A SQLite database in a folder of its own, for tests: opened through the seams, through SQLite's
/// C interface as an application would, and through the sqlite3 shell.

#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <string>

#include <postrider/store/sqlite.hpp>
#include <postrider/testing/store_conformance.hpp>

namespace postrider::testing {

/// The folder goes with the object.
class SqliteDatabase {
 public:
  /// Migrated, unless told otherwise.
  explicit SqliteDatabase(SchemaNames names = {}, bool migrated = true);
  ~SqliteDatabase();
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] std::string path() const { return (folder_ / "app.db").string(); }
  /// `create` only when asked for.
  [[nodiscard]] SqliteOptions options(bool create = false) const;
  [[nodiscard]] std::unique_ptr<Store> store() const { return make_sqlite_store(options()); }

 private:
  std::filesystem::path folder_;
  SchemaNames names_;
};

/// A connection of an application: plain C interface, SQLite's own defaults, no waiting.
class RawConnection {
 public:
  explicit RawConnection(const std::string& path);
  ~RawConnection() { sqlite3_close(handle_); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  /// SQLite's extended result code; `SQLITE_OK` when all of it ran.
  int run(const std::string& sql);
  /// The same, and a failure fails the test.
  void must(const std::string& sql);
  [[nodiscard]] std::string last_message() const { return sqlite3_errmsg(handle_); }
  /// First column of the first row as text; "(none)" without a row, "(null)" for NULL.
  [[nodiscard]] std::string value(const std::string& sql);
  /// All first columns, a line each.
  [[nodiscard]] std::string lines(const std::string& sql);
  [[nodiscard]] sqlite3* handle() const { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
};

[[nodiscard]] bool has_sqlite_shell();

struct ShellRun {
  int exit_code = 0;
  std::string output;  ///< both streams
};

/// Runs `sql` in the sqlite3 shell, which stops at the first error.
[[nodiscard]] ShellRun run_sqlite_shell(const SqliteDatabase& database, const std::string& sql);

/// The harness of the conformance suite.
[[nodiscard]] std::unique_ptr<StoreHarness> make_sqlite_harness();
[[nodiscard]] std::unique_ptr<StoreHarness> make_prefixed_sqlite_harness();

}  // namespace postrider::testing
