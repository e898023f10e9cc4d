#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/job_view.hpp"
#include "cli/json_text.hpp"
#include "cli/session.hpp"

namespace postrider::cli {

ExitCode run_worker_list(const Options& options, Console& console) {
  const auto& worker = options.worker;
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto workers =
      session.backend().job_operations()->workers(worker.ended, std::nullopt, session.deadline());
  if (!workers) return console.fail("worker list", workers.error());
  if (worker.json) {
    console.print(printed(workers_json(*workers)));
    return ExitCode::ok;
  }
  console.print(workers->empty() ? "No worker is running.\n" : workers_text(*workers, console));
  return ExitCode::ok;
}

}  // namespace postrider::cli
