#pragma once
/// \file
/// MariaDB (10.11 or later) as store, over libmariadb: one connection per object, which opens when
/// it is needed and never blocks beyond a deadline.

#include <memory>
#include <string>

#include <postrider/diagnosis.hpp>
#include <postrider/operations.hpp>
#include <postrider/purger.hpp>
#include <postrider/schema.hpp>
#include <postrider/store.hpp>

namespace postrider {

struct MariadbOptions {
  /// mariadb://USER[:PASSWORD]@HOST[:PORT]/DATABASE[?NAME=VALUE[&…]], percent-encoded where a
  /// character has a meaning. Names: `socket`, the path of a Unix socket in place of host and port;
  /// `tls`, `verify` (the default for hosts that are not this machine) or `off`; `tls_ca`, a file
  /// of certificates that are trusted in place of the system's.
  std::string url;
  /// The prefix alone: what others call a schema is a database here, and stands in the URL.
  SchemaNames names;
  /// Decided before the first migration: how many partitions relays may share. 1 to 1024.
  int partitions = 64;
};

/// Nothing is connected before the first call.
[[nodiscard]] std::unique_ptr<Store> make_mariadb_store(MariadbOptions options);
[[nodiscard]] std::unique_ptr<Migrator> make_mariadb_migrator(MariadbOptions options);
[[nodiscard]] std::unique_ptr<Operations> make_mariadb_operations(MariadbOptions options);
[[nodiscard]] std::unique_ptr<Purger> make_mariadb_purger(MariadbOptions options);
/// Compares the server's clock with `clock`, which must outlive it.
[[nodiscard]] std::unique_ptr<Doctor> make_mariadb_doctor(MariadbOptions options,
                                                          const Clock& clock = system_clock());

}  // namespace postrider
