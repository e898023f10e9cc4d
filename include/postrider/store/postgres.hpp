#pragma once
/// \file
/// PostgreSQL (13 or later) as store, over libpq: one connection per object, prepared statements,
/// statements of one transaction in one pipeline.
///
/// Store and migrator want the primary, a database in UTF-8, and a connection of their own or from
/// a pooler in session mode: they prepare statements and set their session's parameters.

#include <memory>
#include <string>

#include <postrider/clock.hpp>
#include <postrider/diagnosis.hpp>
#include <postrider/job_operations.hpp>
#include <postrider/job_store.hpp>
#include <postrider/operations.hpp>
#include <postrider/purger.hpp>
#include <postrider/schedule_store.hpp>
#include <postrider/schema.hpp>
#include <postrider/store.hpp>

namespace postrider {

struct PostgresOptions {
  /// A URL or keyword string by libpq's own rules; what it leaves open comes from the environment
  /// (PGHOST, PGPASSFILE, …) as with psql.
  std::string conninfo;
  SchemaNames names;
  /// Decided before the first migration: how many partitions relays may share. 1 to 1024.
  int partitions = 64;
};

/// Nothing is connected before the first call.
[[nodiscard]] std::unique_ptr<Store> make_postgres_store(PostgresOptions options);
/// With a second connection while it waits for work, which it is told of by NOTIFY: not behind a
/// pooler in transaction mode.
[[nodiscard]] std::unique_ptr<JobStore> make_postgres_job_store(PostgresOptions options);
[[nodiscard]] std::unique_ptr<Migrator> make_postgres_migrator(PostgresOptions options);
[[nodiscard]] std::unique_ptr<Operations> make_postgres_operations(PostgresOptions options);
[[nodiscard]] std::unique_ptr<JobOperations> make_postgres_job_operations(PostgresOptions options);
[[nodiscard]] std::unique_ptr<ScheduleStore> make_postgres_schedule_store(PostgresOptions options);
[[nodiscard]] std::unique_ptr<Purger> make_postgres_purger(PostgresOptions options);
/// Compares the server's clock with `clock`, which must outlive it.
[[nodiscard]] std::unique_ptr<Doctor> make_postgres_doctor(PostgresOptions options,
                                                           const Clock& clock = system_clock());

}  // namespace postrider
