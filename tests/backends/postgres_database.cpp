#include "backends/postgres_database.hpp"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

namespace postrider::testing {

PostgresDatabase::PostgresDatabase(PostgresOptions options, Postgres* server)
    : server_(server != nullptr ? server : &shared_postgres()),
      name_(server_->create_database()),
      options_(std::move(options)) {
  options_.conninfo = conninfo();
  migrate();
}

PostgresDatabase::~PostgresDatabase() {
  if (server_->running()) server_->drop_database(name_);
}

void PostgresDatabase::migrate() const {
  const auto done =
      make_postgres_migrator(options_)->up(std::nullopt, Deadline::after(std::chrono::seconds(30)));
  if (!done) throw std::runtime_error(describe(done.error()));
}

void PostgresDatabase::end_sessions() const {
  PostgresSession session(server_->conninfo("postgres"));
  const auto pids =
      session.rows("SELECT pid FROM pg_stat_activity WHERE datname = '" + name_ + "'");
  for (const auto& pid : pids)
    session.run("SELECT pg_terminate_backend(" + pid + ")");
  // Only a process that is gone has closed its socket.
  for (const auto& pid : pids) {
    while (::kill(std::stoi(pid), 0) == 0 || errno != ESRCH) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
}

bool lacks_postgres() {
  return lacks(why_no_postgres());
}

bool lacks(const std::string& why) {
  if (why.empty()) return false;
  if (std::getenv("CI") != nullptr) {
    ADD_FAILURE() << why;
  } else {
    [&] { GTEST_SKIP() << why; }();
  }
  return true;
}

}  // namespace postrider::testing
