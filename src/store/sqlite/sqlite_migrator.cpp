#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include <postrider/store/sqlite.hpp>

#include "store/common/sql_names.hpp"
#include "store/sqlite/sqlite_connection.hpp"
#include "store/sqlite/sqlite_schema.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider {
namespace store::sqlite {
namespace {

namespace statements = sql::store_sqlite;
using statements::Migration;

Error failed(ErrorCode code, Disposition disposition, std::string message) {
  return {code, disposition, std::move(message), "sqlite", ""};
}

/// Text columns of a UTF-16 database would be converted on every write and read, payloads included.
Result<void> check_encoding(SqliteConnection& connection) {
  auto encoding = connection.query("PRAGMA encoding");
  if (encoding.next() && encoding.text(0) == "UTF-8") return {};
  if (auto read = encoding.result(); !read) return read;
  return failed(ErrorCode::unsupported, Disposition::stop,
                "the database stores text as UTF-16, which does not keep every payload as it is. "
                "Use a database with PRAGMA encoding = 'UTF-8'.");
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

class SqliteMigrator final : public Migrator {
 public:
  explicit SqliteMigrator(const SqliteOptions& options)
      : reader_(without_create(options), Access::read_only), writer_(options, Access::read_write) {}

  Result<std::vector<MigrationStep>> steps(Deadline deadline) override {
    const auto applied = reader_.read(deadline, [&] { return applied_steps(reader_); });
    const bool absent = !applied && applied.error().code == ErrorCode::not_found;
    if (!applied && !absent) return applied.error();
    const auto& names = reader_.options().names;
    std::vector<MigrationStep> steps;
    for (const auto& migration : statements::migrations) {
      steps.push_back({migration.number, std::string(migration.name),
                       substitute_names(migration.up, names),
                       substitute_names(migration.down, names),
                       !absent && applied->contains(migration.number)});
    }
    return steps;
  }

  Result<std::vector<int>> up(std::optional<int> target, Deadline deadline) override {
    if (auto checked = check_target(target); !checked) return checked.error();
    std::vector<int> done;
    for (const auto& migration : statements::migrations) {
      if (target && migration.number > *target) break;
      const auto applied = writer_.write(deadline, [&] { return apply(migration); });
      if (!applied) return applied.error();
      if (*applied) done.push_back(migration.number);
    }
    return done;
  }

  Result<std::vector<int>> down(int target, bool even_with_rows, Deadline deadline) override {
    if (auto checked = check_target(target); !checked) return checked.error();
    std::vector<int> done;
    for (auto step = std::rbegin(statements::migrations);
         step != std::rend(statements::migrations) && step->number > target; ++step) {
      const auto taken = writer_.write(deadline, [&] { return take_back(*step, even_with_rows); });
      if (!taken) return taken.error();
      if (*taken) done.push_back(step->number);
    }
    return done;
  }

 private:
  /// False when the step was there already: somebody else may have been first.
  Result<bool> apply(const Migration& migration) {
    if (auto checked = check_encoding(writer_); !checked) return checked.error();
    if (auto made = writer_.query(statements::schema_create).run(); !made) return made.error();
    const auto applied = applied_steps(writer_);
    if (!applied) return applied.error();
    if (auto checked = check_not_newer(*applied); !checked) return checked.error();
    if (applied->contains(migration.number)) return false;

    const auto doing = fmt::format("migration {} up", migration.number);
    if (auto run = writer_.run_script(migration.up, doing); !run) return run.error();
    auto record = writer_.query(statements::schema_insert);
    record.bind(":number", std::int64_t{migration.number}).bind(":name", migration.name);
    if (auto done = record.run(); !done) return done.error();
    return true;
  }

  /// False when the step was not there.
  Result<bool> take_back(const Migration& migration, bool even_with_rows) {
    const auto applied = applied_steps(writer_);
    if (!applied) return applied.error();
    if (auto checked = check_not_newer(*applied); !checked) return checked.error();
    if (!applied->contains(migration.number)) return false;
    if (!even_with_rows) {
      if (auto checked = check_nothing_open(); !checked) return checked.error();
    }

    const auto doing = fmt::format("migration {} down", migration.number);
    if (auto run = writer_.run_script(migration.down, doing); !run) return run.error();
    auto record =
        writer_.query(applied->size() == 1 ? statements::schema_drop : statements::schema_delete);
    if (applied->size() > 1) record.bind(":number", std::int64_t{migration.number});
    if (auto done = record.run(); !done) return done.error();
    return true;
  }

  Result<void> check_nothing_open() {
    auto counts = writer_.query(statements::schema_rows_at_risk);
    if (!counts.next()) return counts.result();
    const auto events = counts.integer(0);
    const auto deliveries = counts.integer(1);
    if (events == 0 && deliveries == 0) return {};
    return failed(ErrorCode::conflict, Disposition::reject,
                  fmt::format("{} events have not left and {} deliveries are open; they would be "
                              "lost. Let the relay finish, or ask for it even with rows.",
                              events, deliveries));
  }

  SqliteConnection reader_;
  SqliteConnection writer_;
};

}  // namespace
}  // namespace store::sqlite

std::unique_ptr<Migrator> make_sqlite_migrator(SqliteOptions options) {
  return std::make_unique<store::sqlite::SqliteMigrator>(options);
}

}  // namespace postrider
