#include "cli/relay_summary.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/table.hpp"

namespace postrider::cli {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t number(std::size_t count) {
  return static_cast<std::int64_t>(count);
}

std::int64_t confirmed_on(const PassReport& report, const std::string& route) {
  const auto found = report.confirmed.find(route);
  return found == report.confirmed.end() ? 0 : number(found->second);
}

// A hundred deliveries that failed alike are one line.
using Trouble = std::tuple<std::string, OutcomeKind, std::string, std::string>;
std::map<Trouble, std::int64_t> troubles_of(const PassReport& report) {
  std::map<Trouble, std::int64_t> troubles;
  for (const auto& error : report.errors) {
    ++troubles[{error.route, error.outcome, error.code, error.detail}];
  }
  return troubles;
}

std::string trouble_line(const Trouble& trouble, std::int64_t count) {
  const auto& [route, outcome, code, detail] = trouble;
  return fmt::format("  {}: {}{}{}{}{}\n", route.empty() ? "relay" : route, to_string(outcome),
                     code.empty() ? "" : fmt::format(" ({})", code),
                     detail.empty() ? "" : ": " + harmless(detail), count > 1 ? " × " : "",
                     count > 1 ? std::to_string(count) : "");
}

std::vector<std::string> consequences(const PassReport& report) {
  std::vector<std::string> lines;
  const auto add = [&](std::size_t count, std::string_view noun, std::string_view rest) {
    if (count > 0) lines.push_back(fmt::format("{} {}", counted(number(count), noun), rest));
  };
  add(report.jobs, "job", "made for workers.");
  add(report.retried, "delivery", "will be tried again.");
  add(report.failed, "delivery", "failed for good. See `postrider dead list`.");
  add(report.parked, "delivery", "stored: behind an earlier one, or behind a paused route.");
  add(report.waiting, "event", "left in the table until a paused route is back.");
  add(report.held, "event", "held: no route matches. Add one, or set unrouted = \"discard\".");
  add(report.discarded, "event", "discarded: no route matches.");
  return lines;
}

std::string paused_line(const std::string& route, const std::string& code) {
  if (code != "blocked") return fmt::format("{} is paused: {}.\n", route, code);
  return fmt::format("{0} is paused. Its events wait for `postrider route resume {0}`.\n", route);
}

std::set<std::string> foreign_owners(const PassReport& report) {
  std::set<std::string> owners;
  for (const auto& lease : report.foreign)
    owners.insert(lease.owner);
  return owners;
}

Json error_json(const PassError& error) {
  Json json;
  json["route"] = error.route;
  json["seq"] = error.seq ? Json(std::to_string(error.seq->value())) : Json(nullptr);
  json["event_id"] = error.event_id ? Json(error.event_id->value().to_string()) : Json(nullptr);
  json["outcome"] = to_string(error.outcome);
  json["code"] = error.code;
  json["detail"] = error.detail;
  return json;
}

}  // namespace

std::string summary_text(const PassReport& report, const ShownRoutes& routes,
                         const PausedRoutes& paused) {
  auto text = fmt::format("{} read, {} taken up.\n", counted(number(report.claimed), "event"),
                          counted(number(report.due), "stored delivery"));
  for (const auto& [name, url] : routes) {
    text += fmt::format("  {} -> {}: {} delivered\n", name, url, confirmed_on(report, name));
  }
  for (const auto& line : consequences(report))
    text += line + "\n";
  for (const auto& [route, code] : paused)
    text += paused_line(route, code);
  const auto troubles = troubles_of(report);
  if (!troubles.empty()) text += "What went wrong:\n";
  for (const auto& [trouble, count] : troubles)
    text += trouble_line(trouble, count);
  if (report.errors_left_out > 0) {
    text += fmt::format("  and {} not shown\n", counted(number(report.errors_left_out), "error"));
  }
  if (!report.foreign.empty()) {
    text += fmt::format("{} owned by another relay: {}.\n",
                        counted(number(report.foreign.size()), "partition"),
                        fmt::join(foreign_owners(report), ", "));
  }
  if (report.more) text += "More is waiting: run it again, or with --drain.\n";
  return text;
}

std::string summary_json(const PassReport& report, const ShownRoutes& routes,
                         const PausedRoutes& paused) {
  Json json;
  json["claimed"] = report.claimed;
  json["due"] = report.due;
  json["routes"] = Json::array();
  for (const auto& [name, url] : routes) {
    json["routes"].push_back({{"route", name}, {"to", url}, {"sent", confirmed_on(report, name)}});
  }
  json["jobs"] = report.jobs;
  json["retried"] = report.retried;
  json["failed"] = report.failed;
  json["parked"] = report.parked;
  json["waiting"] = report.waiting;
  json["held"] = report.held;
  json["discarded"] = report.discarded;
  json["more"] = report.more;
  json["errors"] = Json::array();
  for (const auto& error : report.errors)
    json["errors"].push_back(error_json(error));
  json["errors_left_out"] = report.errors_left_out;
  json["paused_routes"] = paused;
  json["foreign_owners"] = foreign_owners(report);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool destination_unavailable(const PassReport& report) {
  return report.waiting > 0 ||
         std::any_of(report.errors.begin(), report.errors.end(), [](const PassError& error) {
           return error.outcome == OutcomeKind::unavailable ||
                  error.outcome == OutcomeKind::throttled;
         });
}

}  // namespace postrider::cli
