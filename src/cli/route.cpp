#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"
#include "config/suggestion.hpp"

namespace postrider::cli {
namespace {

using Json = nlohmann::ordered_json;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What may be shown of a destination even when its secrets were not looked up.
std::string shown_destination(const Route& route) {
  if (route.job && route.destination.empty()) return "queue " + route.job->queue;
  return registry::redacted(route.destination);
}

std::string list_text(const config::Settings& settings, const std::vector<std::string>& paused,
                      const Console& console) {
  Table table({{"route"}, {"to"}, {"state"}});
  for (const auto& each : settings.routes) {
    const bool stopped = contains(paused, each.route.name);
    table.add({{each.route.name},
               {shown_destination(each.route)},
               {stopped ? "paused" : "active", stopped ? Style::yellow : Style::green}});
  }
  for (const auto& name : paused) {
    const bool configured = std::any_of(settings.routes.begin(), settings.routes.end(),
                                        [&](const auto& each) { return each.route.name == name; });
    if (!configured) table.add({{name}, {"(not configured)"}, {"paused", Style::yellow}});
  }
  return table.text(console);
}

std::string list_json(const config::Settings& settings, const std::vector<std::string>& paused) {
  auto json = Json::array();
  for (const auto& each : settings.routes) {
    json.push_back({{"route", each.route.name},
                    {"to", shown_destination(each.route)},
                    {"paused", contains(paused, each.route.name)}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A misspelt name would pause a route that nobody has. Without a configuration nothing is known.
bool is_known(const config::Settings& settings, const std::string& name, Console& console) {
  std::vector<std::string> names;
  for (const auto& each : settings.routes)
    names.push_back(each.route.name);
  if (names.empty() || contains(names, name)) return true;
  const auto near = config::nearest(name, names);
  console.complain("route", fmt::format("there is no route '{}'. {}", harmless(name),
                                        near ? "Did you mean " + *near + "?"
                                             : "`postrider route list` shows them."));
  return false;
}

// Nothing leaves the relay on a job route: its jobs wait in their queue, and that can be paused.
bool makes_jobs(const config::Settings& settings, const std::string& name, Console& console) {
  for (const auto& each : settings.routes) {
    if (each.route.name != name || !each.route.job) continue;
    console.complain("route",
                     fmt::format("{} makes jobs, and workers take them. Pause their queue: "
                                 "`postrider queue pause {}`.",
                                 name, each.route.job->queue));
    return true;
  }
  return false;
}

struct Change {
  std::string command;
  std::string done;
  std::string already;
  bool must_be_known;  // a route that left the configuration can still be resumed
  Result<bool> (Operations::*apply)(const std::string&, const Operator&, std::optional<Timestamp>,
                                    Deadline);
};

ExitCode run_change(const Change& change, const Options& options, Console& console) {
  const auto& route = options.route;
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  if (change.must_be_known && (!is_known(session.settings(), route.name, console) ||
                               makes_jobs(session.settings(), route.name, console))) {
    return ExitCode::data;
  }
  const auto operations = session.backend().operations();
  const Operator who{operator_name(route.operator_name), route.reason};
  const auto changed =
      (*operations.*change.apply)(route.name, who, std::nullopt, session.deadline());
  if (!changed) return console.fail(change.command, changed.error());
  console.print(
      fmt::format("{} {}\n", harmless(route.name), *changed ? change.done : change.already));
  return ExitCode::ok;
}

}  // namespace

ExitCode run_route_list(const Options& options, Console& console) {
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto status = session.backend().operations()->status(std::nullopt, session.deadline());
  if (!status) return console.fail("route list", status.error());
  console.print(options.route.json ? list_json(session.settings(), status->paused_routes)
                                   : list_text(session.settings(), status->paused_routes, console));
  return ExitCode::ok;
}

ExitCode run_route_pause(const Options& options, Console& console) {
  return run_change({"route pause", "is paused. Its events wait.", "was paused already.", true,
                     &Operations::route_pause},
                    options, console);
}

ExitCode run_route_resume(const Options& options, Console& console) {
  return run_change(
      {"route resume", "goes on.", "was not paused.", false, &Operations::route_resume}, options,
      console);
}

}  // namespace postrider::cli
