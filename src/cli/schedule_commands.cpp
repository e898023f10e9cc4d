// The commands of schedules with their options.

#include <CLI/CLI.hpp>

#include "cli/command_parts.hpp"

namespace postrider::cli {

void add_schedule_commands(CLI::App& app, Options& options) {
  auto* schedule = command(app, "schedule", "List, run, pause and resume periodic events",
                           "  postrider schedule list\n"
                           "  postrider schedule run nightly-report --reason 'after the repair'\n"
                           "  postrider schedule pause nightly-report --reason 'stocktaking'\n"
                           "  postrider schedule resume nightly-report\n");
  schedule->require_subcommand(1);
  auto& chosen = options.schedule;
  auto* list = command(*schedule, "list", "List schedules with their next and last slot",
                       "  postrider schedule list --format json\n");
  add_format(*list, chosen.json);
  add_database(*list, options.database);
  const auto change = [&](const std::string& name, const std::string& purpose,
                          const std::string& examples) {
    auto* made = command(*schedule, name, purpose, examples);
    made->add_option("name", chosen.name, "The schedule")->type_name("SCHEDULE")->required();
    add_operator(*made, chosen.reason, chosen.operator_name);
    add_database(*made, options.database);
    return made;
  };
  auto* run = change("run", "Write its event now, beside its slots, even while it is paused",
                     "  postrider schedule run nightly-report --reason 'after the repair'\n");
  add_format(*run, chosen.json);
  change("pause", "Let its slots pass without an event",
         "  postrider schedule pause nightly-report --reason 'stocktaking'\n");
  change("resume", "Let it go on with the first slot after now",
         "  postrider schedule resume nightly-report\n");
  change("forget", "Delete what is known of one that is configured no more",
         "  postrider schedule forget old-report\n");
}

}  // namespace postrider::cli
