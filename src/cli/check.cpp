#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/schedule_view.hpp"
#include "cli/session.hpp"
#include "cli/status_view.hpp"
#include "cli/table.hpp"
#include "config/duration.hpp"

namespace postrider::cli {
namespace {

using Json = nlohmann::ordered_json;

/// One threshold: what it is about, what was found, what is allowed.
struct Threshold {
  std::string name;
  std::string found;
  std::string allowed;
  bool exceeded = false;
};

Threshold age_finding(std::string name, std::optional<milliseconds> age, milliseconds most) {
  return {std::move(name), age_text(age), age_text(most), age && *age > most};
}

Threshold count_finding(std::string name, std::int64_t count, std::int64_t most) {
  return {std::move(name), std::to_string(count), std::to_string(most), count > most};
}

std::string text_of(const std::vector<Threshold>& findings, const Console& console) {
  Table table({{"check"}, {"found", true}, {"allowed", true}, {"result"}});
  for (const auto& finding : findings) {
    table.add(
        {{finding.name},
         {finding.found},
         {finding.allowed},
         {finding.exceeded ? "exceeded" : "ok", finding.exceeded ? Style::red : Style::green}});
  }
  return table.text(console);
}

std::string json_of(const std::vector<Threshold>& findings, bool exceeded) {
  Json json;
  json["ok"] = !exceeded;
  json["checks"] = Json::array();
  for (const auto& finding : findings) {
    json["checks"].push_back({{"check", finding.name},
                              {"found", finding.found},
                              {"allowed", finding.allowed},
                              {"exceeded", finding.exceeded}});
  }
  return json.dump(2) + "\n";
}

}  // namespace

ExitCode run_check(const Options& options, Console& console) {
  const auto unrouted_age = config::parse_duration(options.check.max_unrouted_age);
  const auto due_age = config::parse_duration(options.check.max_due_age);
  if (!unrouted_age || !due_age) {
    console.complain("check", fmt::format("{} is no duration. Write 500ms, 5s, 2m, 1h or 7d.",
                                          unrouted_age ? "--max-due-age" : "--max-unrouted-age"));
    return ExitCode::usage;
  }
  Session session(options.database);
  if (const auto failed = session.open(Needs::store, console)) return *failed;
  const auto status = session.backend().operations()->status(std::nullopt, session.deadline());
  if (!status) return console.fail("check", status.error());

  const auto total = total_of(*status);
  std::vector<Threshold> findings{
      age_finding("unrouted_age", status->events.oldest_unrouted_age, *unrouted_age),
      age_finding("due_age", total.oldest_due_age, *due_age),
      count_finding("failed", total.failed, options.check.max_failed),
      count_finding("overdue", total.overdue, options.check.max_overdue)};
  if (!options.check.allow_paused) {
    findings.push_back(
        count_finding("paused_routes", static_cast<std::int64_t>(status->paused_routes.size()), 0));
  }
  if (!session.settings().schedules.empty()) {
    const auto states =
        session.backend().schedule_store()->states(std::nullopt, session.deadline());
    if (!states) return console.fail("check", states.error());
    const auto schedules = shown_schedules(session.settings().schedules, *states);
    findings.push_back(
        count_finding("late_schedules", count_of(schedules, ScheduleStanding::late), 0));
    if (!options.check.allow_paused) {
      findings.push_back(
          count_finding("paused_schedules", count_of(schedules, ScheduleStanding::paused), 0));
    }
  }
  bool exceeded = false;
  for (const auto& finding : findings)
    exceeded |= finding.exceeded;
  console.print(options.check.json ? json_of(findings, exceeded) : text_of(findings, console));
  return exceeded ? ExitCode::exceeded : ExitCode::ok;
}

}  // namespace postrider::cli
