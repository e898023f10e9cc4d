#include <algorithm>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"

namespace postrider::cli {
namespace {

// A migration rewrites tables: it may take longer than any call of a relay.
constexpr auto patience = std::chrono::minutes(10);

using Steps = std::vector<MigrationStep>;

std::string named(const Steps& steps, int number) {
  const auto step = std::find_if(steps.begin(), steps.end(),
                                 [&](const auto& each) { return each.number == number; });
  return fmt::format("{:03} {}", number, step == steps.end() ? "" : step->name);
}

void print_sql(const Steps& steps, Console& console) {
  for (const auto& step : steps) {
    console.print(fmt::format("-- {:03} {}\n{}\n", step.number, step.name, step.up));
  }
}

void print_status(const Steps& steps, Console& console) {
  Table table({{"step", true}, {"name"}, {"applied"}});
  for (const auto& step : steps) {
    table.add({{fmt::format("{:03}", step.number)},
               {step.name},
               {step.applied ? "yes" : "no", step.applied ? Style::green : Style::yellow}});
  }
  console.print(table.text(console));
}

ExitCode migrate_down(const MigrateOptions& options, Migrator& migrator, const Steps& steps,
                      Console& console) {
  const auto undone =
      migrator.down(*options.down_to, options.even_with_rows, Deadline::after(patience));
  if (!undone) return console.fail("migrate", undone.error());
  for (const int number : *undone)
    console.print("took back " + named(steps, number) + "\n");
  if (undone->empty()) console.print("Nothing to take back.\n");
  return ExitCode::ok;
}

ExitCode migrate_up(Migrator& migrator, const Steps& steps, Console& console) {
  const auto applied = migrator.up(std::nullopt, Deadline::after(patience));
  if (!applied) return console.fail("migrate", applied.error());
  for (const int number : *applied)
    console.print("applied " + named(steps, number) + "\n");
  console.print(applied->empty()
                    ? "The tables are up to date.\n"
                    : "The tables are ready. Next: write events, then postrider relay\n");
  return ExitCode::ok;
}

}  // namespace

ExitCode run_migrate(const Options& options, Console& console) {
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto migrator = session.backend().migrator();
  const auto steps = migrator->steps(session.deadline());
  if (!steps) return console.fail("migrate", steps.error());

  if (options.migrate.print) {
    print_sql(*steps, console);
    return ExitCode::ok;
  }
  if (options.migrate.status) {
    print_status(*steps, console);
    return ExitCode::ok;
  }
  if (options.migrate.down_to) return migrate_down(options.migrate, *migrator, *steps, console);
  return migrate_up(*migrator, *steps, console);
}

}  // namespace postrider::cli
