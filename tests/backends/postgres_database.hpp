#pragma once
/// \file
/// A migrated database of its own on the shared PostgreSQL, and hands to reach into it.

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <postrider/store/postgres.hpp>

#include "servers/postgres_server.hpp"

namespace postrider::testing {

/// Requires: `why_no_postgres` is empty.
class PostgresDatabase {
 public:
  /// On `server`, or on the shared one.
  explicit PostgresDatabase(PostgresOptions options = {}, Postgres* server = nullptr);
  ~PostgresDatabase();
  PostgresDatabase(const PostgresDatabase&) = delete;
  PostgresDatabase& operator=(const PostgresDatabase&) = delete;

  [[nodiscard]] const PostgresOptions& options() const { return options_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Postgres& server() const { return *server_; }
  [[nodiscard]] std::string conninfo() const { return server_->conninfo(name_); }

  [[nodiscard]] std::unique_ptr<Store> open_store() const { return make_postgres_store(options_); }
  [[nodiscard]] std::unique_ptr<PostgresSession> open_session() const {
    return std::make_unique<PostgresSession>(conninfo());
  }
  void migrate() const;
  /// Ends every other session and waits until it is gone.
  void end_sessions() const;

 private:
  Postgres* server_;
  std::string name_;
  PostgresOptions options_;
};

/// What is missing, for the reason `why`, is a failure in CI and a skip elsewhere. True: leave the
/// test.
[[nodiscard]] bool lacks(const std::string& why);
[[nodiscard]] bool lacks_postgres();

}  // namespace postrider::testing

#define POSTRIDER_NEEDS_POSTGRES() \
  if (::postrider::testing::lacks_postgres()) return
