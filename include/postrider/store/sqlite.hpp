#pragma once
/// \file
/// SQLite as store. A connection per object, WAL mode, `synchronous=FULL`; every writing
/// transaction is `BEGIN IMMEDIATE`.

#include <memory>
#include <string>

#include <postrider/diagnosis.hpp>
#include <postrider/job_operations.hpp>
#include <postrider/job_store.hpp>
#include <postrider/operations.hpp>
#include <postrider/purger.hpp>
#include <postrider/schedule_store.hpp>
#include <postrider/schema.hpp>
#include <postrider/store.hpp>

namespace postrider {

struct SqliteOptions {
  std::string path;   ///< of the database file
  SchemaNames names;  ///< `schema` must be empty
  /// Create the file when it is absent. Only the migrator should.
  bool create = false;
};

/// Nothing is opened before the first call.
[[nodiscard]] std::unique_ptr<Store> make_sqlite_store(SqliteOptions options);
/// Its `await_work` watches the file's write-ahead log with inotify: any commit ends it. Where the
/// kernel grants no watch, it looks five times a second.
[[nodiscard]] std::unique_ptr<JobStore> make_sqlite_job_store(SqliteOptions options);
[[nodiscard]] std::unique_ptr<Migrator> make_sqlite_migrator(SqliteOptions options);
[[nodiscard]] std::unique_ptr<Operations> make_sqlite_operations(SqliteOptions options);
[[nodiscard]] std::unique_ptr<JobOperations> make_sqlite_job_operations(SqliteOptions options);
[[nodiscard]] std::unique_ptr<ScheduleStore> make_sqlite_schedule_store(SqliteOptions options);
[[nodiscard]] std::unique_ptr<Purger> make_sqlite_purger(SqliteOptions options);
[[nodiscard]] std::unique_ptr<Doctor> make_sqlite_doctor(SqliteOptions options);

}  // namespace postrider
