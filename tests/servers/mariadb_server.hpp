#pragma once
/// \file
/// A MariaDB for tests: a free port on loopback, a Unix socket and its data in one folder.
///
/// Under CTest each test is a process of its own; there a supervisor holds one server for all of
/// them. A test program that is started by hand has its own.
///
/// The server refuses to run as root; a test that runs as root starts it as the user `nobody`.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "servers/child_process.hpp"
#include "servers/loopback.hpp"

namespace postrider::testing {

/// Empty when a MariaDB can be started here, else why not.
[[nodiscard]] std::string why_no_mariadb();

/// A running MariaDB, whoever started it.
///
/// Thread safety: one thread at a time. Functions that cannot do what they say throw.
class Mariadb {
 public:
  /// Who may do everything, without a password, from this machine.
  static constexpr const char* admin = "tester";

  Mariadb(std::string folder, int port);
  virtual ~Mariadb() = default;

  [[nodiscard]] std::string socket() const { return folder_ + "/socket"; }
  [[nodiscard]] int port() const { return port_; }
  /// As a store takes it, over TCP; another `port` leads through a proxy.
  [[nodiscard]] std::string url(std::string_view database, int port = 0) const;
  [[nodiscard]] virtual bool running() { return true; }

  /// A database of its own, with a name that no other has.
  [[nodiscard]] std::string create_database();
  void drop_database(const std::string& name);
  /// What tests have left on the server, one line each: databases, and users beside our own.
  [[nodiscard]] std::vector<std::string> leftovers() const;

  struct ShellRun {
    int exit_code = -1;
    std::string output;
  };
  /// Gives `script` to the `mariadb` shell, as a person does.
  [[nodiscard]] ShellRun run_shell(const std::string& database, const std::string& script) const;

 private:
  std::string folder_;
  int port_;
  TemporaryFolder scratch_{"maria-scratch"};
};

/// A server of its own.
///
/// Requires: `why_no_mariadb` is empty.
class MariadbServer final : private TemporaryFolder, public Mariadb {
 public:
  /// Makes a data folder and starts the server on it, with `settings` ("name=value") beside our
  /// own. It writes to disk as in production.
  explicit MariadbServer(std::vector<std::string> settings = {});
  ~MariadbServer() override;
  MariadbServer(const MariadbServer&) = delete;
  MariadbServer& operator=(const MariadbServer&) = delete;

  /// Waits until it takes connections.
  void start();
  /// Rolls open transactions back and ends every session.
  void stop();
  /// As a crash: the next start recovers from the log.
  void kill();
  [[nodiscard]] bool running() override { return process_ && process_->running(); }
  [[nodiscard]] const std::string& folder() const { return path(); }

 private:
  void give_folder_to_server_user() const;
  void init_data() const;
  void create_admin() const;

  std::vector<std::string> settings_;
  std::optional<ChildProcess> process_;
};

/// The server that all tests of this program share, running. POSTRIDER_TEST_MARIADB names the
/// folder of a supervised one (mariadb_supervisor.cpp); without it one is started at the first call
/// and ends with the program. Requires: `why_no_mariadb` is empty.
[[nodiscard]] Mariadb& shared_mariadb();

/// The server that a supervisor holds in `folder`; null when there is none yet.
[[nodiscard]] std::unique_ptr<Mariadb> supervised_mariadb(const std::string& folder);

/// Where a supervisor says which server it holds: its folder, then its port.
[[nodiscard]] inline std::string supervised_mariadb_address(const std::string& folder) {
  return folder + "/address";
}

/// One session as a test needs it: SQL in, text out. Throws what the server refuses.
class MariadbSession {
 public:
  /// Without a database, `database` is empty.
  explicit MariadbSession(const Mariadb& server, const std::string& database = {},
                          const std::string& user = Mariadb::admin);
  ~MariadbSession();
  MariadbSession(const MariadbSession&) = delete;
  MariadbSession& operator=(const MariadbSession&) = delete;

  /// The first column of the first row; empty when there is none. NULL is "NULL".
  std::string run(const std::string& sql);
  /// All rows, columns joined by '|'.
  std::vector<std::string> rows(const std::string& sql);
  /// The error number with which the server refuses; 0 when it does not.
  unsigned refusal(const std::string& sql);
  [[nodiscard]] unsigned long id() const;
  /// The handle itself, a `MYSQL*`, for code that takes an application's connection.
  [[nodiscard]] void* handle() const;

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace postrider::testing
