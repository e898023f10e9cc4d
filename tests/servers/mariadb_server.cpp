#include "servers/mariadb_server.hpp"

#include <mariadb/mysql.h>
#include <pwd.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

namespace postrider::testing {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds mariadb_patience{60};
constexpr const char* mariadb_user = "nobody";

/// Debian keeps servers out of the PATH of ordinary users.
std::string mariadb_program(const std::string& name) {
  const auto in_path = find_program(name);
  if (!in_path.empty()) return in_path;
  const auto in_sbin = "/usr/sbin/" + name;
  return std::filesystem::exists(in_sbin) ? in_sbin : "";
}

bool runs_as_root() {
  return ::geteuid() == 0;
}

std::string file_content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Environment mariadb_environment() {
  return {{"PATH", "/usr/sbin:/usr/bin:/bin"}, {"LC_ALL", "C.UTF-8"}, {"TZ", "UTC"}};
}

std::vector<std::string> as_mariadb_user(std::vector<std::string> arguments) {
  if (!runs_as_root()) return arguments;
  const auto* const user = ::getpwnam(mariadb_user);
  std::vector<std::string> all = {find_program("setpriv"),
                                  "--reuid=" + std::to_string(user->pw_uid),
                                  "--regid=" + std::to_string(user->pw_gid),
                                  "--clear-groups",
                                  "--pdeathsig",
                                  "KILL",
                                  "--"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

}  // namespace

std::string why_no_mariadb() {
  if (mariadb_program("mariadbd").empty()) return "MariaDB's server is not installed";
  if (mariadb_program("mariadb-install-db").empty()) return "mariadb-install-db is not installed";
  if (find_program("mariadb").empty()) return "the mariadb shell is not installed";
  if (runs_as_root() && ::getpwnam(mariadb_user) == nullptr) {
    return "root cannot run a MariaDB and there is no user `nobody`";
  }
  if (runs_as_root() && find_program("setpriv").empty()) return "setpriv is not installed";
  return {};
}

Mariadb::Mariadb(std::string folder, int port) : folder_(std::move(folder)), port_(port) {}

std::string Mariadb::url(std::string_view database, int port) const {
  return std::string("mariadb://") + admin +
         "@127.0.0.1:" + std::to_string(port == 0 ? port_ : port) + "/" + std::string(database);
}

std::string Mariadb::create_database() {
  static std::atomic<int> last{0};
  auto name = "test_" + std::to_string(::getpid()) + "_" + std::to_string(++last);
  MariadbSession(*this).run("CREATE DATABASE " + name);
  return name;
}

void Mariadb::drop_database(const std::string& name) {
  MariadbSession(*this).run("DROP DATABASE IF EXISTS " + name);
}

std::vector<std::string> Mariadb::leftovers() const {
  return MariadbSession(*this).rows(
      "SELECT concat('database ', schema_name) FROM information_schema.schemata"
      " WHERE schema_name NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')"
      " UNION ALL"
      " SELECT concat('user ', user) FROM mysql.user"
      " WHERE user NOT IN ('', 'root', 'mysql', 'nobody', 'mariadb.sys', 'tester')"
      " AND user <> substring_index(user(), '@', 1)"
      " ORDER BY 1");
}

Mariadb::ShellRun Mariadb::run_shell(const std::string& database, const std::string& script) const {
  const auto input = scratch_.write("script.sql", script);
  const auto output = scratch_.write("shell.out", "");
  const auto command =
      "exec mariadb --no-defaults --batch --raw --skip-column-names"
      " --default-character-set=utf8mb4 --socket=" +
      socket() + " --user=" + admin + " " + database + " <" + input;
  ChildProcess shell({find_program("sh"), "-c", command}, mariadb_environment(), output);
  ShellRun run;
  run.exit_code = shell.wait(mariadb_patience);
  run.output = file_content(output);
  return run;
}

MariadbServer::MariadbServer(std::vector<std::string> settings)
    : TemporaryFolder("mariadb"), Mariadb(path(), free_port()), settings_(std::move(settings)) {
  give_folder_to_server_user();
  init_data();
  start();
  create_admin();
}

MariadbServer::~MariadbServer() = default;

void MariadbServer::give_folder_to_server_user() const {
  if (!runs_as_root()) return;
  const auto* const user = ::getpwnam(mariadb_user);
  if (::chown(folder().c_str(), user->pw_uid, user->pw_gid) != 0) {
    throw std::runtime_error("the folder cannot be given to the user nobody");
  }
}

void MariadbServer::init_data() const {
  const auto log = file("install.log");
  ChildProcess install(as_mariadb_user({mariadb_program("mariadb-install-db"), "--no-defaults",
                                        "--datadir=" + file("data"), "--tmpdir=" + folder(),
                                        "--auth-root-authentication-method=normal",
                                        "--skip-test-db", "--skip-name-resolve"}),
                       mariadb_environment(), log);
  if (install.wait(mariadb_patience) != 0) {
    throw std::runtime_error("mariadb-install-db failed: " + file_content(log));
  }
}

void MariadbServer::start() {
  std::vector<std::string> arguments = {mariadb_program("mariadbd"),
                                        "--no-defaults",
                                        "--datadir=" + file("data"),
                                        "--tmpdir=" + folder(),
                                        "--socket=" + socket(),
                                        "--pid-file=" + file("pid"),
                                        "--port=" + std::to_string(port()),
                                        "--bind-address=127.0.0.1",
                                        "--skip-name-resolve",
                                        "--max-connections=200",
                                        "--innodb-buffer-pool-size=32M"};
  for (const auto& setting : settings_)
    arguments.push_back("--" + setting);
  std::filesystem::remove(socket());
  process_.emplace(as_mariadb_user(std::move(arguments)), mariadb_environment(),
                   file("server.log"));
  const auto give_up = std::chrono::steady_clock::now() + mariadb_patience;
  for (int descriptor = -1; descriptor < 0;) {
    if (!running() || std::chrono::steady_clock::now() > give_up) {
      throw std::runtime_error("MariaDB did not start: " + file_content(file("server.log")));
    }
    // The socket is made last.
    descriptor = std::filesystem::exists(socket()) ? connect_to_loopback(port()) : -1;
    if (descriptor >= 0) {
      ::close(descriptor);
    } else {
      std::this_thread::sleep_for(milliseconds(10));
    }
  }
}

void MariadbServer::create_admin() const {
  MariadbSession root(*this, "mysql", "root");
  for (const auto* host : {"localhost", "127.0.0.1"}) {
    const auto account = std::string("'") + admin + "'@'" + host + "'";
    root.run("CREATE USER IF NOT EXISTS " + account);
    root.run("GRANT ALL PRIVILEGES ON *.* TO " + account + " WITH GRANT OPTION");
  }
}

void MariadbServer::stop() {
  process_->stop(mariadb_patience);
}

void MariadbServer::kill() {
  process_->kill();
}

std::unique_ptr<Mariadb> supervised_mariadb(const std::string& folder) {
  std::ifstream address(supervised_mariadb_address(folder));
  std::string server_folder;
  int port = 0;
  if (!std::getline(address, server_folder) || !(address >> port)) return nullptr;
  return std::make_unique<Mariadb>(server_folder, port);
}

Mariadb& shared_mariadb() {
  static const std::unique_ptr<Mariadb> server = [] {
    const char* const folder =
        std::getenv("POSTRIDER_TEST_MARIADB");  // NOLINT(concurrency-mt-unsafe)
    auto supervised = folder == nullptr ? nullptr : supervised_mariadb(folder);
    return supervised ? std::move(supervised)
                      : std::unique_ptr<Mariadb>(std::make_unique<MariadbServer>());
  }();
  return *server;
}

struct MariadbSession::Connection {
  Connection(const Mariadb& server, const std::string& database, const std::string& user)
      : handle(mysql_init(nullptr)) {
    mysql_options(handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (mysql_real_connect(handle, nullptr, user.c_str(), nullptr,
                           database.empty() ? nullptr : database.c_str(), 0,
                           server.socket().c_str(), 0) == nullptr) {
      const std::string message = mysql_error(handle);
      mysql_close(handle);
      throw std::runtime_error(message);
    }
  }
  ~Connection() { mysql_close(handle); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  MYSQL* handle;
};

MariadbSession::MariadbSession(const Mariadb& server, const std::string& database,
                               const std::string& user)
    : connection_(std::make_unique<Connection>(server, database, user)) {}

MariadbSession::~MariadbSession() = default;

std::string MariadbSession::run(const std::string& sql) {
  const auto all = rows(sql);
  return all.empty() ? std::string() : all.front().substr(0, all.front().find('|'));
}

std::vector<std::string> MariadbSession::rows(const std::string& sql) {
  auto* const handle = connection_->handle;
  if (mysql_real_query(handle, sql.data(), sql.size()) != 0) {
    throw std::runtime_error(mysql_error(handle));
  }
  std::vector<std::string> rows;
  MYSQL_RES* const result = mysql_store_result(handle);
  if (result == nullptr) return rows;
  while (MYSQL_ROW row = mysql_fetch_row(result)) {
    const auto* const lengths = mysql_fetch_lengths(result);
    std::string line;
    for (unsigned column = 0; column < mysql_num_fields(result); ++column) {
      if (column > 0) line += '|';
      line += row[column] == nullptr ? "NULL" : std::string(row[column], lengths[column]);
    }
    rows.push_back(std::move(line));
  }
  mysql_free_result(result);
  return rows;
}

unsigned MariadbSession::refusal(const std::string& sql) {
  auto* const handle = connection_->handle;
  if (mysql_real_query(handle, sql.data(), sql.size()) != 0) return mysql_errno(handle);
  if (MYSQL_RES* const result = mysql_store_result(handle)) mysql_free_result(result);
  return 0;
}

unsigned long MariadbSession::id() const {
  return mysql_thread_id(connection_->handle);
}

void* MariadbSession::handle() const {
  return connection_->handle;
}

}  // namespace postrider::testing
