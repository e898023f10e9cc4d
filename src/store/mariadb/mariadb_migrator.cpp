#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include <postrider/store/mariadb.hpp>

#include "store/common/sql_names.hpp"
#include "store/mariadb/mariadb_connection.hpp"
#include "store/mariadb/mariadb_schema.hpp"
#include "store/mariadb/mariadb_script.hpp"
#include "store_mariadb_sql.hpp"

namespace postrider {
namespace store::mariadb {
namespace {

namespace statements = sql::store_mariadb;
using statements::Migration;

Error failed(ErrorCode code, Disposition disposition, std::string message) {
  return {code, disposition, std::move(message), "mariadb", ""};
}

Result<void> check_target(std::optional<int> target) {
  const int newest = std::rbegin(statements::migrations)->number;
  if (!target || (*target >= 0 && *target <= newest)) return {};
  return failed(ErrorCode::invalid_argument, Disposition::reject,
                fmt::format("there is no schema {}. Give 0 to {}.", *target, newest));
}

/// What a newer build has made is not for this one to change.
Result<void> check_not_newer(const std::map<int, std::string>& applied) {
  const int newest = std::rbegin(statements::migrations)->number;
  if (applied.empty() || applied.rbegin()->first <= newest) return {};
  return failed(ErrorCode::schema_mismatch, Disposition::stop,
                fmt::format("the database is at schema {} and this build knows {}. Use the newer "
                            "Postrider's `postrider migrate`.",
                            applied.rbegin()->first, newest));
}

/// MariaDB commits each statement of a migration by itself. So a lock of the session lets one run
/// at a time, each statement can be repeated, and a step is recorded behind its last one: what was
/// killed midway is simply run again.
class MariadbMigrator final : public Migrator {
 public:
  explicit MariadbMigrator(MariadbOptions options) : connection_(std::move(options)) {}

  Result<std::vector<MigrationStep>> steps(Deadline deadline) override {
    if (auto opened = connection_.ready(deadline); !opened) return opened.error();
    const auto applied = applied_steps(connection_);
    if (!applied) return applied.error();
    std::vector<MigrationStep> steps;
    for (const auto& migration : statements::migrations) {
      steps.push_back({migration.number, std::string(migration.name), text_of(migration.up),
                       text_of(migration.down), applied->contains(migration.number)});
    }
    return steps;
  }

  Result<std::vector<int>> up(std::optional<int> target, Deadline deadline) override {
    if (auto checked = check_target(target); !checked) return checked.error();
    return alone(deadline, [&]() -> Result<std::vector<int>> {
      std::vector<int> done;
      for (const auto& migration : statements::migrations) {
        if (target && migration.number > *target) break;
        const auto applied = apply(migration);
        if (!applied) return applied.error();
        if (*applied) done.push_back(migration.number);
      }
      return done;
    });
  }

  Result<std::vector<int>> down(int target, bool even_with_rows, Deadline deadline) override {
    if (auto checked = check_target(target); !checked) return checked.error();
    return alone(deadline, [&]() -> Result<std::vector<int>> {
      std::vector<int> done;
      for (auto step = std::rbegin(statements::migrations);
           step != std::rend(statements::migrations) && step->number > target; ++step) {
        const auto taken = take_back(*step, even_with_rows);
        if (!taken) return taken.error();
        if (*taken) done.push_back(step->number);
      }
      return done;
    });
  }

 private:
  [[nodiscard]] std::string text_of(std::string_view sql) const {
    return with_partitions(substitute_names(sql, connection_.options().names),
                           connection_.options().partitions);
  }

  /// Runs `body` while no other migration of this database runs.
  template <class Body>
  Result<std::vector<int>> alone(Deadline deadline, Body body) {
    if (auto opened = connection_.ready(deadline); !opened) return opened.error();
    {
      auto lock = connection_.query(statements::schema_lock);
      lock.bind(":seconds", std::max<std::int64_t>(deadline.remaining().count() / 1000, 0));
      const bool locked = lock.next() && lock.integer(0) == 1;
      if (auto asked = lock.result(); !asked) return asked.error();
      if (!locked) {
        return failed(ErrorCode::busy, Disposition::retry,
                      "another migration of this database is running. Try again when it is done.");
      }
    }
    auto result = body();
    // A session that is gone has given the lock back by that.
    auto unlock = connection_.query(statements::schema_unlock);
    if (auto unlocked = unlock.run(); !unlocked && result) return unlocked.error();
    return result;
  }

  Result<void> run_script(std::string_view sql, const std::string& doing) {
    for (const auto& statement : statements_of(text_of(sql))) {
      if (auto done = connection_.run_text(statement, doing); !done) return done;
    }
    return {};
  }

  /// False when the step was there already: somebody else may have been first.
  Result<bool> apply(const Migration& migration) {
    if (auto made = connection_.query(statements::schema_create).run(); !made) return made.error();
    const auto applied = applied_steps(connection_);
    if (!applied) return applied.error();
    if (auto checked = check_not_newer(*applied); !checked) return checked.error();
    if (applied->contains(migration.number)) return false;

    const auto doing = fmt::format("migration {} up", migration.number);
    if (auto run = run_script(migration.up, doing); !run) return run.error();
    auto record = connection_.query(statements::schema_insert);
    record.bind(":number", std::int64_t{migration.number}).bind(":name", migration.name);
    if (auto done = record.run(); !done) return done.error();
    return true;
  }

  /// False when the step was not there.
  Result<bool> take_back(const Migration& migration, bool even_with_rows) {
    const auto applied = applied_steps(connection_);
    if (!applied) return applied.error();
    if (auto checked = check_not_newer(*applied); !checked) return checked.error();
    if (!applied->contains(migration.number)) return false;
    if (!even_with_rows) {
      if (auto checked = check_nothing_open(); !checked) return checked.error();
    }

    const auto doing = fmt::format("migration {} down", migration.number);
    if (auto run = run_script(migration.down, doing); !run) return run.error();
    auto record = connection_.query(applied->size() == 1 ? statements::schema_drop
                                                         : statements::schema_delete);
    if (applied->size() > 1) record.bind(":number", std::int64_t{migration.number});
    if (auto done = record.run(); !done) return done.error();
    return true;
  }

  Result<void> check_nothing_open() {
    auto counts = connection_.query(statements::schema_rows_at_risk);
    if (!counts.next()) {
      auto read = counts.result();
      // What a migration that was killed midway has removed already, it cannot lose.
      if (!read && read.error().native_code == "1146") return {};
      return read;
    }
    const auto events = counts.integer(0);
    const auto deliveries = counts.integer(1);
    if (events == 0 && deliveries == 0) return {};
    return failed(ErrorCode::conflict, Disposition::reject,
                  fmt::format("{} events have not left and {} deliveries are open; they would be "
                              "lost. Let the relay finish, or ask for it even with rows.",
                              events, deliveries));
  }

  MariadbConnection connection_;
};

}  // namespace
}  // namespace store::mariadb

std::unique_ptr<Migrator> make_mariadb_migrator(MariadbOptions options) {
  return std::make_unique<store::mariadb::MariadbMigrator>(std::move(options));
}

}  // namespace postrider
