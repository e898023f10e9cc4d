#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/fair_turns.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"
#include "config/duration.hpp"

namespace postrider::cli {
namespace {

// Small enough that nobody waits long for its locks, large enough to get on.
constexpr std::size_t slice_rows = 1000;

std::string_view noun_of(Kept kept) {
  switch (kept) {
    case Kept::events:
      return "event";
    case Kept::keys:
      return "key";
    case Kept::receipts:
      return "receipt";
    case Kept::workers:
      return "worker";
  }
  return "row";
}

/// One run of the command, from the open session on.
class PurgeRun {
 public:
  PurgeRun(const PurgeOptions& options, const Session& session, Console& console)
      : options_(options),
        session_(session),
        console_(console),
        purger_(session.backend().purger()) {
    if (!options.dry_run) who_ = Operator{operator_name(options.operator_name), options.reason};
  }

  /// With an age, all that is named goes by that; else each by its retention.
  ExitCode run(std::optional<milliseconds> age) {
    const bool all = !options_.events && !options_.keys && !options_.receipts && !options_.workers;
    for (const auto kept : all_kept) {
      if (!all && !is_named(kept)) continue;
      const auto retention = session_.settings().relay.retention.of(kept);
      if (!age && retention == milliseconds::zero()) {
        console_.print(fmt::format("{} are kept for ever.\n", to_string(kept)));
        continue;
      }
      if (const auto failed = sweep(kept, age.value_or(retention))) return *failed;
    }
    return ExitCode::ok;
  }

 private:
  [[nodiscard]] bool is_named(Kept kept) const {
    switch (kept) {
      case Kept::events:
        return options_.events;
      case Kept::keys:
        return options_.keys;
      case Kept::receipts:
        return options_.receipts;
      case Kept::workers:
        return options_.workers;
    }
    return false;
  }

  std::optional<ExitCode> sweep(Kept kept, milliseconds age) {
    std::int64_t total = 0;
    PurgeRequest request;
    request.kept = kept;
    request.older_than = age;
    request.rows = slice_rows;
    request.dry_run = options_.dry_run;
    FairTurns turns(system_clock());
    for (bool more = true; more;) {
      const auto slice = purger_->purge(request, who_, session_.deadline());
      if (!slice) return failed(kept, total, slice.error());
      total += slice->rows;
      request.after = slice->last;
      more = slice->more;
      console_.progress(told(kept, total));
      if (more && !options_.dry_run) turns.next();
    }
    console_.end_progress();
    console_.print(
        fmt::format("{}, older than {}.\n", told(kept, total), config::duration_text(age)));
    return std::nullopt;
  }

  ExitCode failed(Kept kept, std::int64_t total, const Error& error) {
    console_.end_progress();
    if (total > 0) console_.print(told(kept, total) + " before a failure.\n");
    return console_.fail("purge", error);
  }

  std::string told(Kept kept, std::int64_t count) const {
    return fmt::format("{} {}", counted(count, noun_of(kept)),
                       options_.dry_run ? "would be deleted" : "deleted");
  }

  const PurgeOptions& options_;
  const Session& session_;
  Console& console_;
  std::unique_ptr<Purger> purger_;
  std::optional<Operator> who_;
};

}  // namespace

ExitCode run_purge(const Options& options, Console& console) {
  std::optional<milliseconds> age;
  if (options.purge.older_than) {
    age = config::parse_duration(*options.purge.older_than);
    if (!age) {
      console.complain("purge", "--older-than is no duration. Write 500ms, 5s, 2m, 1h or 7d.");
      return ExitCode::usage;
    }
  }
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  return PurgeRun(options.purge, session, console).run(age);
}

}  // namespace postrider::cli
