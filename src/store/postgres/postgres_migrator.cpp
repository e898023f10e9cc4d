#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include <postrider/store/postgres.hpp>

#include "store/common/sql_names.hpp"
#include "store/postgres/postgres_connection.hpp"
#include "store/postgres/postgres_schema.hpp"
#include "store_postgres_sql.hpp"

namespace postrider {
namespace store::postgres {
namespace {

namespace statements = sql::store_postgres;
using statements::Migration;

/// A migration that waits for a table makes every writer behind it wait as well.
constexpr milliseconds most_lock_wait{3000};

constexpr std::string_view partitions_placeholder = "{partitions}";

Error failed(ErrorCode code, Disposition disposition, std::string message) {
  return {code, disposition, std::move(message), "postgres", ""};
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

std::string render(std::string_view sql, const SchemaNames& names, int partitions) {
  std::string text = substitute_names(sql, names);
  for (auto at = text.find(partitions_placeholder); at != std::string::npos;
       at = text.find(partitions_placeholder)) {
    text.replace(at, partitions_placeholder.size(), std::to_string(partitions));
  }
  return text;
}

class PostgresMigrator final : public Migrator {
 public:
  explicit PostgresMigrator(PostgresOptions options)
      : connection_(std::move(options), Use::schema) {}

  Result<std::vector<MigrationStep>> steps(Deadline deadline) override {
    std::map<int, std::string> applied;
    const auto found = applied_steps(connection_, deadline);
    if (!found && found.error().code != ErrorCode::not_found) return found.error();
    if (found) applied = *found;
    const auto& names = found ? connection_.names() : connection_.options().names;
    const int partitions = connection_.options().partitions;
    std::vector<MigrationStep> steps;
    for (const auto& migration : statements::migrations) {
      steps.push_back(
          {migration.number, std::string(migration.name), render(migration.up, names, partitions),
           render(migration.down, names, partitions), applied.contains(migration.number)});
    }
    return steps;
  }

  Result<std::vector<int>> up(std::optional<int> target, Deadline deadline) override {
    if (auto checked = check_target(target); !checked) return checked.error();
    std::vector<int> done;
    for (const auto& migration : statements::migrations) {
      if (target && migration.number > *target) break;
      const auto applied = in_transaction(deadline, [&] { return apply(migration, deadline); });
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
      const auto taken =
          in_transaction(deadline, [&] { return take_back(*step, even_with_rows, deadline); });
      if (!taken) return taken.error();
      if (*taken) done.push_back(step->number);
    }
    return done;
  }

 private:
  /// A second runner waits here for the first, for as long as its deadline lets it; the short wait
  /// for locks of tables begins behind that.
  template <class Work>
  Result<bool> in_transaction(Deadline deadline, Work work) {
    if (auto begun = connection_.begin(deadline); !begun) return begun.error();
    auto done = run("schema_lock", {}, deadline);
    if (done) done = shorten_lock_wait(deadline);
    if (!done) return done.error();
    auto worked = work();
    if (!worked) {
      connection_.rollback(deadline);
      return worked;
    }
    if (auto committed = connection_.commit(deadline); !committed) return committed.error();
    return worked;
  }

  Result<void> shorten_lock_wait(Deadline deadline) {
    Parameters parameters;
    parameters.text(std::to_string(std::min(most_lock_wait, deadline.remaining()).count() + 1));
    parameters.text(std::to_string(deadline.remaining().count() + 1));
    return run("session_limits", std::move(parameters), deadline);
  }

  Result<void> run(std::string_view statement, Parameters parameters, Deadline deadline) {
    const std::vector<Call> calls = {{statement, std::move(parameters)}};
    const auto done = connection_.run(calls, deadline);
    if (!done) return done.error();
    return {};
  }

  Result<void> run_script(std::string_view sql, std::string_view doing, Deadline deadline) {
    return connection_.run_script(
        render(sql, connection_.names(), connection_.options().partitions), doing, deadline);
  }

  /// False when the step was there already: somebody else may have been first.
  Result<bool> apply(const Migration& migration, Deadline deadline) {
    if (auto made = make_namespace(deadline); !made) return made.error();
    if (auto made = run("schema_create", {}, deadline); !made) return made.error();
    const auto applied = applied_steps(connection_, deadline);
    if (!applied) return applied.error();
    if (auto checked = check_not_newer(*applied); !checked) return checked.error();
    if (applied->contains(migration.number)) return false;

    const auto doing = fmt::format("migration {} up", migration.number);
    if (auto done = run_script(migration.up, doing, deadline); !done) return done.error();
    Parameters record;
    record.small_integer(migration.number).text(migration.name);
    if (auto done = run("schema_insert", std::move(record), deadline); !done) return done.error();
    return true;
  }

  /// Asked first, as CREATE … IF NOT EXISTS wants the right to create even for doing nothing.
  Result<void> make_namespace(Deadline deadline) {
    const auto& schema = connection_.options().names.schema;
    if (schema.empty()) return {};
    Parameters name;
    name.text(schema);
    const std::vector<Call> calls = {{"schema_namespace_exists", std::move(name)}};
    const auto found = connection_.run(calls, deadline);
    if (!found) return found.error();
    if (found->front().boolean(0, 0)) return {};
    return run_script(fmt::format("CREATE SCHEMA \"{}\"", schema), "CREATE SCHEMA", deadline);
  }

  /// False when the step was not there.
  Result<bool> take_back(const Migration& migration, bool even_with_rows, Deadline deadline) {
    const auto applied = applied_steps(connection_, deadline);
    if (!applied) return applied.error();
    if (auto checked = check_not_newer(*applied); !checked) return checked.error();
    if (!applied->contains(migration.number)) return false;
    if (!even_with_rows) {
      if (auto checked = check_nothing_open(deadline); !checked) return checked.error();
    }

    const auto doing = fmt::format("migration {} down", migration.number);
    if (auto done = run_script(migration.down, doing, deadline); !done) return done.error();
    const bool last = applied->size() == 1;
    Parameters record;
    if (!last) record.small_integer(migration.number);
    const auto statement = last ? "schema_drop" : "schema_delete";
    if (auto done = run(statement, std::move(record), deadline); !done) return done.error();
    return true;
  }

  Result<void> check_nothing_open(Deadline deadline) {
    const auto counted = connection_.run(std::vector<Call>{{"schema_rows_at_risk"}}, deadline);
    if (!counted) return counted.error();
    const auto events = counted->front().integer(0, 0);
    const auto deliveries = counted->front().integer(0, 1);
    if (events == 0 && deliveries == 0) return {};
    return failed(ErrorCode::conflict, Disposition::reject,
                  fmt::format("{} events have not left and {} deliveries are open; they would be "
                              "lost. Let the relay finish, or ask for it even with rows.",
                              events, deliveries));
  }

  PostgresConnection connection_;
};

}  // namespace
}  // namespace store::postgres

std::unique_ptr<Migrator> make_postgres_migrator(PostgresOptions options) {
  return std::make_unique<store::postgres::PostgresMigrator>(std::move(options));
}

}  // namespace postrider
