#pragma once
/// \file
/// A migrated database of its own on the shared MariaDB, and hands to reach into it.

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <postrider/store/mariadb.hpp>

#include "servers/mariadb_server.hpp"

namespace postrider::testing {

/// Requires: `why_no_mariadb` is empty.
class MariadbDatabase {
 public:
  /// On `server`, or on the shared one.
  explicit MariadbDatabase(MariadbOptions options = {}, Mariadb* server = nullptr);
  ~MariadbDatabase();
  MariadbDatabase(const MariadbDatabase&) = delete;
  MariadbDatabase& operator=(const MariadbDatabase&) = delete;

  [[nodiscard]] const MariadbOptions& options() const { return options_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Mariadb& server() const { return *server_; }
  [[nodiscard]] std::string table(const std::string& name) const {
    return options_.names.prefix + name;
  }

  [[nodiscard]] std::unique_ptr<Store> open_store() const { return make_mariadb_store(options_); }
  [[nodiscard]] std::unique_ptr<MariadbSession> open_session() const {
    return std::make_unique<MariadbSession>(*server_, name_);
  }
  void migrate() const;
  /// Ends every other session in this database and waits until it is gone.
  void end_sessions() const;

 private:
  Mariadb* server_;
  std::string name_;
  MariadbOptions options_;
};

/// What is missing is a failure in CI and a skip elsewhere. True: leave the test.
[[nodiscard]] bool lacks_mariadb();

}  // namespace postrider::testing

#define POSTRIDER_NEEDS_MARIADB() \
  if (::postrider::testing::lacks_mariadb()) return
