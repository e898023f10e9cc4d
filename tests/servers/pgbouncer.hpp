#pragma once
/// \file
/// A pooler in front of a PostgreSQL of the tests.

#include <optional>
#include <string>

#include "servers/child_process.hpp"
#include "servers/loopback.hpp"
#include "servers/postgres_server.hpp"

namespace postrider::testing {

/// Empty when a pgbouncer can be started here, else why not.
[[nodiscard]] std::string why_no_pgbouncer();

/// Takes any user, without a password. Ends with the object.
///
/// Requires: `why_no_pgbouncer` is empty.
class Pgbouncer {
 public:
  /// `mode` is its `pool_mode`: "session" or "transaction". Returns once it listens; throws when it
  /// does not in time.
  Pgbouncer(const Postgres& server, const std::string& mode);

  [[nodiscard]] int port() const { return port_; }

 private:
  TemporaryFolder folder_{"pgbouncer"};
  int port_ = free_port();
  std::optional<ChildProcess> process_;
};

}  // namespace postrider::testing
