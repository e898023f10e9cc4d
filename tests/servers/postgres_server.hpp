#pragma once
/// \file
/// A PostgreSQL for tests: a free port on loopback, a Unix socket and its database in one folder.
///
/// Under CTest each test is a process of its own; there a supervisor holds one server for all of
/// them. A test program that is started by hand has its own.
///
/// The server refuses to run as root; a test that runs as root starts it as the user `postgres`.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "servers/child_process.hpp"
#include "servers/loopback.hpp"

namespace postrider::testing {

/// Empty when a PostgreSQL can be started here, else why not.
[[nodiscard]] std::string why_no_postgres();

/// A running PostgreSQL, whoever started it.
///
/// Thread safety: one thread at a time. Functions that cannot do what they say throw.
class Postgres {
 public:
  Postgres(std::string socket_folder, int port);
  virtual ~Postgres() = default;

  /// By the Unix socket, as superuser.
  [[nodiscard]] std::string conninfo(std::string_view database) const;
  /// Over TCP, as this role; another `port` leads through a proxy.
  [[nodiscard]] std::string tcp_conninfo(std::string_view database, std::string_view role,
                                         int port = 0) const;
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] virtual bool running() { return true; }

  /// A database of its own, with a name that no other has.
  [[nodiscard]] std::string create_database();
  void drop_database(const std::string& name);
  /// What tests have left on the server, one line each: databases, and schemas and tables in the
  /// database that all share.
  [[nodiscard]] std::vector<std::string> leftovers() const;

  /// Runs one of PostgreSQL's own programs ("psql", "pg_dump", …) and returns its output. Throws
  /// when it does not end with 0.
  [[nodiscard]] std::string run_program(const std::string& name,
                                        const std::vector<std::string>& arguments) const;
  /// For files of the test; gone with this object.
  [[nodiscard]] const TemporaryFolder& scratch() const { return scratch_; }

 private:
  std::string socket_folder_;
  int port_;
  TemporaryFolder scratch_{"pg-scratch"};
};

/// A server of its own.
///
/// Requires: `why_no_postgres` is empty.
class PostgresServer final : private TemporaryFolder, public Postgres {
 public:
  /// Makes a database cluster and starts it, with `settings` ("name=value") beside our own. It
  /// writes to disk as in production. `variables` join the environment that it runs in.
  explicit PostgresServer(std::vector<std::string> settings = {}, Environment variables = {});
  /// A standby of `primary` as it is now. It never asks for more: one that has fallen behind.
  struct StandbyOf {
    const Postgres& primary;
  };
  explicit PostgresServer(StandbyOf origin);
  ~PostgresServer() override;
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  /// Waits until it takes connections.
  void start();
  /// Makes a standby a primary, on a timeline of its own.
  void promote();
  /// Rolls open transactions back and ends every session.
  void stop_fast();
  /// As a crash: the next start recovers from the log.
  void stop_immediate();
  [[nodiscard]] bool running() override { return process_ && process_->running(); }
  [[nodiscard]] const std::string& folder() const { return path(); }

 private:
  [[nodiscard]] std::vector<std::string> as_server_user(std::vector<std::string> arguments) const;
  void give_folder_to_server_user() const;
  void init_cluster();
  void copy_cluster(const Postgres& primary);
  void end_with_signal(int number);

  std::vector<std::string> settings_;
  Environment variables_;
  std::optional<ChildProcess> process_;
};

/// The server that all tests of this program share, running. POSTRIDER_TEST_POSTGRES names the
/// folder of a supervised one (postgres_supervisor.cpp); without it one is started at the first
/// call and ends with the program. Requires: `why_no_postgres` is empty.
[[nodiscard]] Postgres& shared_postgres();

/// The server that a supervisor holds in `folder`; null when there is none yet.
[[nodiscard]] std::unique_ptr<Postgres> supervised_postgres(const std::string& folder);

/// Where a supervisor says which server it holds: its socket's folder, then its port.
[[nodiscard]] inline std::string supervised_address_file(const std::string& folder) {
  return folder + "/address";
}

/// One session as a test needs it: SQL in, text out. Throws what the server refuses.
class PostgresSession {
 public:
  explicit PostgresSession(const std::string& conninfo);
  ~PostgresSession();
  PostgresSession(const PostgresSession&) = delete;
  PostgresSession& operator=(const PostgresSession&) = delete;

  /// The first column of the first row; empty when there is none.
  std::string run(const std::string& sql);
  /// With text parameters.
  std::string run(const std::string& sql, const std::vector<std::string>& parameters);
  /// All rows, columns joined by '|'.
  std::vector<std::string> rows(const std::string& sql);
  /// The SQLSTATE with which the server refuses; empty when it does not.
  std::string refusal(const std::string& sql);
  /// COPY … FROM STDIN with these lines, each sent at once; `after_line` is called behind each.
  void copy(
      const std::string& sql, const std::vector<std::string>& lines,
      const std::function<void()>& after_line = [] {});
  /// Sends without waiting for the answer, and then waits for it.
  void send(const std::string& sql);
  void finish();
  /// Whether the answer to `send` is not there yet.
  [[nodiscard]] bool waits();
  [[nodiscard]] int backend_pid() const;

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace postrider::testing
