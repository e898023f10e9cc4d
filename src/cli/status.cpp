#include "cli/commands.hpp"
#include "cli/session.hpp"
#include "cli/status_view.hpp"

namespace postrider::cli {

ExitCode run_status(const Options& options, Console& console) {
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto status = session.backend().operations()->status(std::nullopt, session.deadline());
  if (!status) return console.fail("status", status.error());
  const auto jobs = session.backend().job_operations()->status(std::nullopt, session.deadline());
  if (!jobs) return console.fail("status", jobs.error());
  const auto states = session.backend().schedule_store()->states(std::nullopt, session.deadline());
  if (!states) return console.fail("status", states.error());
  const auto schedules = shown_schedules(session.settings().schedules, *states);
  std::vector<std::string> routes;
  for (const auto& each : session.settings().routes)
    routes.push_back(each.route.name);
  console.print(options.status.json ? status_json(*status, *jobs, routes, schedules)
                                    : status_text(*status, *jobs, routes, schedules, console));
  return ExitCode::ok;
}

}  // namespace postrider::cli
