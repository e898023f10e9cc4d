#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/json_text.hpp"
#include "cli/schedule_view.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"
#include "config/suggestion.hpp"

namespace postrider::cli {
namespace {

const Schedule* find_configured(const config::Settings& settings, const std::string& name) {
  for (const auto& each : settings.schedules) {
    if (each.schedule.name == name) return &each.schedule;
  }
  return nullptr;
}

ExitCode unknown(const std::string& command, const std::string& name,
                 const std::vector<std::string>& known, std::string_view where, Console& console) {
  const auto near = config::nearest(name, known);
  console.complain(command, fmt::format("there is no schedule '{}' {}. {}", harmless(name), where,
                                        near ? "Did you mean " + *near + "?"
                                             : "`postrider schedule list` shows them."));
  return ExitCode::data;
}

struct ScheduleChange {
  std::string command;
  std::string done;
  std::string already;
};

/// `apply` changes one schedule that the database knows.
template <class Apply>
ExitCode change_schedule(const ScheduleChange& change, const Session& session,
                         const ScheduleOptions& chosen, Console& console, Apply apply) {
  const auto store = session.backend().schedule_store();
  const auto states = store->states(std::nullopt, session.deadline());
  if (!states) return console.fail(change.command, states.error());
  std::vector<std::string> known;
  for (const auto& state : states->schedules)
    known.push_back(state.name);
  if (std::find(known.begin(), known.end(), chosen.name) == known.end()) {
    return unknown(change.command, chosen.name, known, "that a relay has seen", console);
  }
  const Operator who{operator_name(chosen.operator_name), chosen.reason};
  const Result<bool> changed = apply(*store, who, session.deadline());
  if (!changed) return console.fail(change.command, changed.error());
  console.print(fmt::format("{} {}\n", chosen.name, *changed ? change.done : change.already));
  return ExitCode::ok;
}

}  // namespace

ExitCode run_schedule_list(const Options& options, Console& console) {
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto states = session.backend().schedule_store()->states(std::nullopt, session.deadline());
  if (!states) return console.fail("schedule list", states.error());
  const auto schedules = shown_schedules(session.settings().schedules, *states);
  if (options.schedule.json) {
    console.print(printed(schedules_json(schedules)));
    return ExitCode::ok;
  }
  console.print(schedules.empty() ? "There is no schedule. Add a [[schedules]] table.\n"
                                  : schedules_text(schedules, console));
  return ExitCode::ok;
}

ExitCode run_schedule_run(const Options& options, Console& console) {
  const auto& chosen = options.schedule;
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto* schedule = find_configured(session.settings(), chosen.name);
  if (schedule == nullptr) {
    std::vector<std::string> known;
    for (const auto& each : session.settings().schedules)
      known.push_back(each.schedule.name);
    return unknown("schedule run", chosen.name, known, "in the configuration", console);
  }
  const Operator who{operator_name(chosen.operator_name), chosen.reason};
  const auto id =
      session.backend().schedule_store()->run(*schedule, who, std::nullopt, session.deadline());
  if (!id) return console.fail("schedule run", id.error());
  const auto text = id->value().to_string();
  if (chosen.json) {
    nlohmann::ordered_json json;
    json["schedule"] = chosen.name;
    json["event_id"] = text;
    console.print(printed(json));
  } else {
    console.print(fmt::format("{} runs now, as event {}.\n", chosen.name, text));
  }
  return ExitCode::ok;
}

ExitCode run_schedule_pause(const Options& options, Console& console) {
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto& chosen = options.schedule;
  return change_schedule(
      {"schedule pause", "is paused. Its slots pass without an event.", "was paused already."},
      session, chosen, console, [&](ScheduleStore& store, const Operator& who, Deadline deadline) {
        return store.pause(chosen.name, who, std::nullopt, deadline);
      });
}

ExitCode run_schedule_resume(const Options& options, Console& console) {
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto& chosen = options.schedule;
  return change_schedule({"schedule resume", "goes on with its next slot.", "was not paused."},
                         session, chosen, console,
                         [&](ScheduleStore& store, const Operator& who, Deadline deadline) {
                           return store.resume(chosen.name, who, std::nullopt, deadline);
                         });
}

ExitCode run_schedule_forget(const Options& options, Console& console) {
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto& chosen = options.schedule;
  // A relay would make it known again, without its pause.
  if (find_configured(session.settings(), chosen.name) != nullptr) {
    console.complain("schedule forget",
                     fmt::format("{} is in the configuration. Remove it there first, and from all "
                                 "relays; or pause it.",
                                 chosen.name));
    return ExitCode::data;
  }
  return change_schedule(
      {"schedule forget", "is forgotten. Its events stay.", "was forgotten already."}, session,
      chosen, console, [&](ScheduleStore& store, const Operator& who, Deadline deadline) {
        return store.forget(chosen.name, who, std::nullopt, deadline);
      });
}

}  // namespace postrider::cli
