#include "servers/postgres_server.hpp"

#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

#include "run/run_marks.hpp"

namespace postrider::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds patience{60};
constexpr const char* server_user = "postgres";

/// The newest installed server; Debian keeps its programs out of PATH.
std::string bin_folder() {
  const auto in_path = find_program("initdb");
  if (!in_path.empty()) return std::filesystem::path(in_path).parent_path().string();
  int newest = 0;
  std::string folder;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/postgresql", error)) {
    const auto name = entry.path().filename().string();
    const int version = std::atoi(name.c_str());
    if (version <= newest || !std::filesystem::exists(entry.path() / "bin" / "initdb")) continue;
    newest = version;
    folder = (entry.path() / "bin").string();
  }
  return folder;
}

std::string program(const std::string& name) {
  const auto beside_server = bin_folder() + "/" + name;
  return std::filesystem::exists(beside_server) ? beside_server : find_program(name);
}

bool is_root() {
  return ::geteuid() == 0;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Environment environment() {
  return {{"PATH", "/usr/bin:/bin"}, {"LC_ALL", "C.UTF-8"}, {"TZ", "UTC"}};
}

/// Runs to the end; its output. Throws when it fails.
std::string run_to_end(const std::vector<std::string>& arguments, const std::string& output_file) {
  std::ofstream(output_file, std::ios::trunc).close();
  ChildProcess process(arguments, environment(), output_file);
  const int exit_code = process.wait(patience);
  auto output = content_of(output_file);
  if (exit_code != 0) throw std::runtime_error(arguments.back() + " failed: " + output);
  return output;
}

struct ResultOwner {
  explicit ResultOwner(PGresult* owned) : result(owned) {}
  ~ResultOwner() { PQclear(result); }
  ResultOwner(const ResultOwner&) = delete;
  ResultOwner& operator=(const ResultOwner&) = delete;
  PGresult* result;
};

}  // namespace

std::string why_no_postgres() {
  if (bin_folder().empty()) return "PostgreSQL's server is not installed";
  if (is_root() && ::getpwnam(server_user) == nullptr) {
    return "root cannot run a PostgreSQL and there is no user `postgres`";
  }
  if (is_root() && find_program("setpriv").empty()) return "setpriv is not installed";
  return {};
}

Postgres::Postgres(std::string socket_folder, int port)
    : socket_folder_(std::move(socket_folder)), port_(port) {}

PostgresServer::PostgresServer(std::vector<std::string> settings, Environment variables)
    : TemporaryFolder("postgres"),
      Postgres(path(), free_port()),
      settings_(std::move(settings)),
      variables_(std::move(variables)) {
  give_folder_to_server_user();
  init_cluster();
  start();
}

PostgresServer::PostgresServer(StandbyOf origin)
    : TemporaryFolder("postgres"), Postgres(path(), free_port()) {
  give_folder_to_server_user();
  copy_cluster(origin.primary);
  start();
}

PostgresServer::~PostgresServer() {
  if (running()) end_with_signal(SIGQUIT);
}

std::vector<std::string> PostgresServer::as_server_user(std::vector<std::string> arguments) const {
  if (!is_root()) return arguments;
  std::vector<std::string> all = {find_program("setpriv"),
                                  std::string("--reuid=") + server_user,
                                  std::string("--regid=") + server_user,
                                  "--init-groups",
                                  "--pdeathsig",
                                  "KILL",
                                  "--"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

void PostgresServer::give_folder_to_server_user() const {
  if (!is_root()) return;
  const auto* const user = ::getpwnam(server_user);
  if (user == nullptr || ::chown(folder().c_str(), user->pw_uid, user->pw_gid) != 0) {
    throw std::runtime_error("the folder cannot be given to the user postgres");
  }
}

void PostgresServer::init_cluster() {
  run_to_end(as_server_user({program("initdb"), "--no-sync", "--auth=trust", "--encoding=UTF8",
                             "--locale=C.UTF-8", std::string("--username=") + server_user, "-D",
                             file("data")}),
             file("initdb.log"));
}

void PostgresServer::copy_cluster(const Postgres& primary) {
  const auto data = file("data");
  run_to_end(as_server_user({program("pg_basebackup"), "--no-sync", "--checkpoint=fast", "-D", data,
                             "-d", primary.conninfo("postgres")}),
             file("basebackup.log"));
  std::ofstream(data + "/standby.signal").close();
}

void PostgresServer::start() {
  std::vector<std::string> arguments = {program("postgres"),    "-D", file("data"), "-p",
                                        std::to_string(port()), "-k", folder()};
  std::vector<std::string> settings = {"listen_addresses=127.0.0.1", "max_prepared_transactions=20",
                                       "max_connections=100", "shared_buffers=32MB"};
  settings.insert(settings.end(), settings_.begin(), settings_.end());
  for (const auto& setting : settings) {
    arguments.emplace_back("-c");
    arguments.push_back(setting);
  }
  // Only for the server itself: a preloaded library may make files as whoever loads it first.
  if (!variables_.empty()) {
    std::vector<std::string> prefix = {find_program("env")};
    for (const auto& [name, value] : variables_)
      prefix.push_back(name + "=" + value);
    arguments.insert(arguments.begin(), prefix.begin(), prefix.end());
  }
  process_.emplace(as_server_user(std::move(arguments)), environment(), file("server.log"));
  const auto give_up = std::chrono::steady_clock::now() + patience;
  while (PQping(conninfo("postgres").c_str()) != PQPING_OK) {
    if (!running() || std::chrono::steady_clock::now() > give_up) {
      throw std::runtime_error("PostgreSQL did not start: " + content_of(file("server.log")));
    }
    std::this_thread::sleep_for(milliseconds(10));
  }
}

void PostgresServer::end_with_signal(int number) {
  process_->signal(number);
  process_->wait(patience);
  process_->kill();
}

void PostgresServer::promote() {
  PostgresSession(conninfo("postgres")).run("SELECT pg_promote()");
}

void PostgresServer::stop_fast() {
  end_with_signal(SIGINT);
}

void PostgresServer::stop_immediate() {
  end_with_signal(SIGQUIT);
}

std::string Postgres::conninfo(std::string_view database) const {
  return "host=" + socket_folder_ + " port=" + std::to_string(port_) + " user=" + server_user +
         " dbname=" + std::string(database);
}

std::string Postgres::tcp_conninfo(std::string_view database, std::string_view role,
                                   int port) const {
  return "host=127.0.0.1 port=" + std::to_string(port == 0 ? port_ : port) +
         " sslmode=disable gssencmode=disable user=" + std::string(role) +
         " dbname=" + std::string(database);
}

std::string Postgres::create_database() {
  static std::atomic<int> last{0};
  const auto name = "test_" + std::to_string(::getpid()) + "_" + std::to_string(++last);
  PostgresSession session(conninfo("postgres"));
  session.run("CREATE DATABASE " + name);
  const char* const test = std::getenv(test_variable);  // NOLINT(concurrency-mt-unsafe)
  if (test != nullptr && *test != '\0') {
    session.run("COMMENT ON DATABASE " + name + " IS 'by " + std::string(test) + "'");
  }
  return name;
}

void Postgres::drop_database(const std::string& name) {
  PostgresSession(conninfo("postgres")).run("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)");
}

std::vector<std::string> Postgres::leftovers() const {
  return PostgresSession(conninfo("postgres"))
      .rows(
          "SELECT 'database ' || concat_ws(' ', datname, shobj_description(oid, 'pg_database'))"
          " FROM pg_database WHERE datname NOT IN ('postgres', 'template0', 'template1')"
          " UNION ALL"
          " SELECT 'schema ' || nspname FROM pg_namespace"
          " WHERE nspname !~ '^pg_' AND nspname NOT IN ('public', 'information_schema')"
          " UNION ALL"
          " SELECT 'relation ' || relname FROM pg_class"
          " WHERE relnamespace = 'public'::regnamespace"
          " ORDER BY 1");
}

std::string Postgres::run_program(const std::string& name,
                                  const std::vector<std::string>& arguments) const {
  std::vector<std::string> all = {program(name)};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_to_end(all, scratch_.file(name + ".out"));
}

std::unique_ptr<Postgres> supervised_postgres(const std::string& folder) {
  std::ifstream address(supervised_address_file(folder));
  std::string socket_folder;
  int port = 0;
  if (!std::getline(address, socket_folder) || !(address >> port)) return nullptr;
  return std::make_unique<Postgres>(socket_folder, port);
}

Postgres& shared_postgres() {
  static const std::unique_ptr<Postgres> server = [] {
    const char* const folder = std::getenv("POSTRIDER_TEST_POSTGRES");
    auto supervised = folder == nullptr ? nullptr : supervised_postgres(folder);
    return supervised ? std::move(supervised)
                      : std::unique_ptr<Postgres>(std::make_unique<PostgresServer>());
  }();
  return *server;
}

struct PostgresSession::Connection {
  explicit Connection(const std::string& conninfo) : handle(PQconnectdb(conninfo.c_str())) {
    if (PQstatus(handle) != CONNECTION_OK) {
      const std::string message = PQerrorMessage(handle);
      PQfinish(handle);
      throw std::runtime_error(message);
    }
    PQsetNoticeReceiver(
        handle, [](void*, const PGresult*) {}, nullptr);
  }
  ~Connection() { PQfinish(handle); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void check(const PGresult* result) const {
    const auto status = PQresultStatus(result);
    if (status != PGRES_FATAL_ERROR && status != PGRES_BAD_RESPONSE) return;
    throw std::runtime_error(PQresultErrorMessage(result));
  }

  PGconn* handle;
};

PostgresSession::PostgresSession(const std::string& conninfo)
    : connection_(std::make_unique<Connection>(conninfo)) {}

PostgresSession::~PostgresSession() = default;

std::string PostgresSession::run(const std::string& sql) {
  const auto all = rows(sql);
  return all.empty() ? std::string() : all.front().substr(0, all.front().find('|'));
}

std::string PostgresSession::run(const std::string& sql,
                                 const std::vector<std::string>& parameters) {
  std::vector<const char*> values;
  for (const auto& parameter : parameters)
    values.push_back(parameter.c_str());
  const ResultOwner owner(PQexecParams(connection_->handle, sql.c_str(),
                                       static_cast<int>(values.size()), nullptr, values.data(),
                                       nullptr, nullptr, 0));
  connection_->check(owner.result);
  return PQntuples(owner.result) == 0 ? "" : PQgetvalue(owner.result, 0, 0);
}

std::vector<std::string> PostgresSession::rows(const std::string& sql) {
  const ResultOwner owner(PQexec(connection_->handle, sql.c_str()));
  connection_->check(owner.result);
  std::vector<std::string> rows;
  for (int row = 0; row < PQntuples(owner.result); ++row) {
    std::string line;
    for (int column = 0; column < PQnfields(owner.result); ++column) {
      if (column > 0) line += '|';
      line += PQgetvalue(owner.result, row, column);
    }
    rows.push_back(std::move(line));
  }
  return rows;
}

std::string PostgresSession::refusal(const std::string& sql) {
  const ResultOwner owner(PQexec(connection_->handle, sql.c_str()));
  const char* const state = PQresultErrorField(owner.result, PG_DIAG_SQLSTATE);
  return state == nullptr ? "" : state;
}

void PostgresSession::copy(const std::string& sql, const std::vector<std::string>& lines,
                           const std::function<void()>& after_line) {
  auto* const handle = connection_->handle;
  const ResultOwner begun(PQexec(handle, sql.c_str()));
  connection_->check(begun.result);
  for (const auto& line : lines) {
    const auto text = line + "\n";
    PQputCopyData(handle, text.data(), static_cast<int>(text.size()));
    PQflush(handle);
    after_line();
  }
  PQputCopyEnd(handle, nullptr);
  finish();
}

void PostgresSession::send(const std::string& sql) {
  if (PQsendQuery(connection_->handle, sql.c_str()) == 0) {
    throw std::runtime_error(PQerrorMessage(connection_->handle));
  }
}

void PostgresSession::finish() {
  std::string failure;
  while (PGresult* const result = PQgetResult(connection_->handle)) {
    const ResultOwner owner(result);
    if (PQresultStatus(result) == PGRES_FATAL_ERROR) failure = PQresultErrorMessage(result);
  }
  if (!failure.empty()) throw std::runtime_error(failure);
}

bool PostgresSession::waits() {
  PQconsumeInput(connection_->handle);
  return PQisBusy(connection_->handle) != 0;
}

int PostgresSession::backend_pid() const {
  return PQbackendPID(connection_->handle);
}

}  // namespace postrider::testing
