#include "backends/mariadb_database.hpp"

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

namespace postrider::testing {

MariadbDatabase::MariadbDatabase(MariadbOptions options, Mariadb* server)
    : server_(server != nullptr ? server : &shared_mariadb()),
      name_(server_->create_database()),
      options_(std::move(options)) {
  options_.url = server_->url(name_);
  migrate();
}

MariadbDatabase::~MariadbDatabase() {
  if (server_->running()) server_->drop_database(name_);
}

void MariadbDatabase::migrate() const {
  const auto done =
      make_mariadb_migrator(options_)->up(std::nullopt, Deadline::after(std::chrono::seconds(60)));
  if (!done) throw std::runtime_error(describe(done.error()));
}

void MariadbDatabase::end_sessions() const {
  MariadbSession session(*server_);
  const auto others = "SELECT id FROM information_schema.processlist WHERE db = '" + name_ + "'";
  for (const auto& id : session.rows(others))
    session.refusal("KILL " + id);
  while (!session.rows(others).empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

bool lacks_mariadb() {
  const auto why = why_no_mariadb();
  if (why.empty()) return false;
  if (std::getenv("CI") != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    ADD_FAILURE() << why;
  } else {
    [&] { GTEST_SKIP() << why; }();
  }
  return true;
}

}  // namespace postrider::testing
