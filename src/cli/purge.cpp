#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"
#include "config/duration.hpp"

namespace postrider::cli {
namespace {

// Small enough that a relay does not wait long for the rows, large enough to get on.
constexpr std::size_t most_at_once = 1000;

}  // namespace

ExitCode run_purge(const Options& options, Console& console) {
  const auto older_than = config::parse_duration(options.purge.older_than);
  if (!older_than) {
    console.complain("purge", "--older-than is no duration. Write 500ms, 5s, 2m, 1h or 7d.");
    return ExitCode::usage;
  }
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto operations = session.backend().operations();
  const bool dry_run = options.purge.dry_run;
  // A dry run deletes nothing, so asking again would count the same events again.
  const auto limit = dry_run ? std::size_t{100'000} : most_at_once;
  std::int64_t total = 0;
  for (std::int64_t last = static_cast<std::int64_t>(limit);
       last == static_cast<std::int64_t>(limit);) {
    const auto purged =
        operations->purge(*older_than, limit, dry_run, std::nullopt, session.deadline());
    if (!purged) return console.fail("purge", purged.error());
    last = dry_run ? 0 : *purged;
    total += *purged;
    console.progress(counted(total, "event") + " deleted");
  }
  console.end_progress();
  const bool at_least = dry_run && total == static_cast<std::int64_t>(limit);
  console.print(fmt::format("{}{} {}.\n", at_least ? "at least " : "", counted(total, "event"),
                            dry_run ? "would be deleted" : "deleted"));
  return ExitCode::ok;
}

}  // namespace postrider::cli
