#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/job_view.hpp"
#include "cli/json_text.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"
#include "config/duration.hpp"

namespace postrider::cli {
namespace {

/// "100/1m"; nothing for "off".
Result<std::optional<RateLimit>> rate_of(const std::string& given) {
  if (given == "off") return std::optional<RateLimit>();
  const auto slash = given.find('/');
  RateLimit rate;
  const auto* const end = given.data() + std::min(slash, given.size());
  const auto [rest, fault] = std::from_chars(given.data(), end, rate.limit);
  const auto period =
      slash == std::string::npos ? std::nullopt : config::parse_duration(given.substr(slash + 1));
  if (fault != std::errc() || rest != end || !period) {
    return Error{ErrorCode::invalid_argument, Disposition::reject,
                 fmt::format("'{}' is no rate. Write 100/1m for at most 100 jobs in a minute, or "
                             "off.",
                             harmless(given)),
                 "cli", ""};
  }
  rate.period = *period;
  if (auto checked = check(rate); !checked) return checked.error();
  return std::optional(rate);
}

struct QueueChange {
  std::string command;
  std::string done;
  std::string already;
};

/// `apply` makes the change of one queue.
template <class Apply>
ExitCode run_queue_change(const QueueChange& change, const Options& options, Console& console,
                          Apply apply) {
  const auto& queue = options.queue;
  if (auto checked = check_queue_name(queue.name); !checked) {
    return console.fail(change.command, checked.error());
  }
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const Operator who{operator_name(queue.operator_name), queue.reason};
  const Result<bool> changed = apply(*session.backend().job_operations(), who, session.deadline());
  if (!changed) return console.fail(change.command, changed.error());
  console.print(fmt::format("{} {}\n", queue.name, *changed ? change.done : change.already));
  return ExitCode::ok;
}

}  // namespace

ExitCode run_queue_list(const Options& options, Console& console) {
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto status = session.backend().job_operations()->status(std::nullopt, session.deadline());
  if (!status) return console.fail("queue list", status.error());
  if (options.queue.json) {
    console.print(printed(queues_json(*status)));
    return ExitCode::ok;
  }
  const auto text = queues_text(*status, console);
  console.print(text.empty() ? "No queue has jobs, is paused or has a limit.\n" : text);
  return ExitCode::ok;
}

ExitCode run_queue_pause(const Options& options, Console& console) {
  return run_queue_change(
      {"queue pause", "is paused. Its jobs wait; what runs goes on.", "was paused already."},
      options, console, [&](JobOperations& operations, const Operator& who, Deadline deadline) {
        return operations.queue_pause(options.queue.name, who, std::nullopt, deadline);
      });
}

ExitCode run_queue_resume(const Options& options, Console& console) {
  return run_queue_change({"queue resume", "goes on.", "was not paused."}, options, console,
                          [&](JobOperations& operations, const Operator& who, Deadline deadline) {
                            return operations.queue_resume(options.queue.name, who, std::nullopt,
                                                           deadline);
                          });
}

ExitCode run_queue_limit(const Options& options, Console& console) {
  const auto rate = rate_of(options.queue.rate);
  if (!rate) return console.fail("queue limit", rate.error());
  const auto done = *rate ? fmt::format("begins at most {} jobs in {}, over all workers.",
                                        (*rate)->limit, config::duration_text((*rate)->period))
                          : std::string("has no limit any more.");
  const std::string already = *rate ? "had this limit already." : "had no limit.";
  return run_queue_change({"queue limit", done, already}, options, console,
                          [&](JobOperations& operations, const Operator& who, Deadline deadline) {
                            return operations.queue_limit(options.queue.name, *rate, who,
                                                          std::nullopt, deadline);
                          });
}

}  // namespace postrider::cli
