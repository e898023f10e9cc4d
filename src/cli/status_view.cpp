#include "cli/status_view.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/job_view.hpp"
#include "cli/table.hpp"

namespace postrider::cli {
namespace {

using Json = nlohmann::ordered_json;

// The columns of a route, in the order of a delivery's life.
struct Count {
  const char* name;
  std::int64_t DeliveryCounts::*member;
  Style alarm;  // when it is not zero
};
constexpr std::array counts{
    Count{"held", &DeliveryCounts::held, Style::yellow},
    Count{"due", &DeliveryCounts::due, Style::plain},
    Count{"delayed", &DeliveryCounts::delayed, Style::plain},
    Count{"dispatched", &DeliveryCounts::dispatched, Style::plain},
    Count{"overdue", &DeliveryCounts::overdue, Style::yellow},
    Count{"completed", &DeliveryCounts::completed, Style::plain},
    Count{"failed", &DeliveryCounts::failed, Style::red},
    Count{"discarded", &DeliveryCounts::discarded, Style::plain},
    Count{"cancelled", &DeliveryCounts::cancelled, Style::plain},
    Count{"retries", &DeliveryCounts::retries, Style::plain},
};

std::optional<milliseconds> older(std::optional<milliseconds> a, std::optional<milliseconds> b) {
  if (!a || !b) return a ? a : b;
  return std::max(*a, *b);
}

// Rows of the database and of the configuration, by name.
std::vector<DeliveryCounts> rows_of(const Status& status, const std::vector<std::string>& routes) {
  std::map<std::string, DeliveryCounts> rows;
  for (const auto& route : routes)
    rows[route].route = route;
  for (const auto& counted : status.routes)
    rows[counted.route] = counted;
  std::vector<DeliveryCounts> sorted;
  for (auto& [name, row] : rows)
    sorted.push_back(std::move(row));
  return sorted;
}

std::string shown_name(const std::string& route) {
  return route.empty() ? "(no route)" : route;
}

std::vector<Table::Cell> cells_of(const DeliveryCounts& row) {
  std::vector<Table::Cell> cells{{shown_name(row.route)}};
  for (const auto& count : counts) {
    const auto value = row.*count.member;
    cells.push_back({std::to_string(value), value == 0 ? Style::plain : count.alarm});
  }
  cells.push_back({age_text(row.oldest_due_age)});
  cells.push_back({age_text(row.oldest_dispatched_age)});
  return cells;
}

std::string events_text(const EventCounts& events, const Console& console) {
  Table table({{"events", true}, {"unrouted", true}, {"oldest unrouted", true}});
  table.add({{std::to_string(events.total)},
             {std::to_string(events.unrouted)},
             {age_text(events.oldest_unrouted_age)}});
  return table.text(console);
}

std::string routes_text(const Status& status, const std::vector<std::string>& routes,
                        const Console& console) {
  std::vector<Table::Column> columns{{"route"}};
  for (const auto& count : counts)
    columns.push_back({count.name, true});
  columns.push_back({"oldest due", true});
  columns.push_back({"oldest dispatched", true});
  Table table(std::move(columns));
  for (const auto& row : rows_of(status, routes))
    table.add(cells_of(row));
  table.add(cells_of(total_of(status)));
  return table.text(console);
}

// One line per relay: a table of 64 partitions would say the same 64 times.
std::string relays_text(const Status& status) {
  struct Owned {
    std::int64_t partitions = 0;
    milliseconds remaining{0};
  };
  std::map<std::string, Owned> owners;
  std::int64_t free = 0;
  for (const auto& partition : status.partitions) {
    if (partition.owner.empty() || !partition.remaining) {
      ++free;
      continue;
    }
    auto& owned = owners[partition.owner];
    ++owned.partitions;
    owned.remaining = std::max(owned.remaining, *partition.remaining);
  }
  std::string text;
  for (const auto& [owner, owned] : owners) {
    text +=
        fmt::format("{} owned by {}, lease ends in {}\n", counted(owned.partitions, "partition"),
                    harmless(owner), age_text(owned.remaining));
  }
  if (owners.empty())
    text += fmt::format("{} free: no relay is running\n", counted(free, "partition"));
  return text;
}

// One line, whatever the number of partitions: a relay that dies leaves all it had.
std::string suspicion_text(const Status& status) {
  Suspicion worst;
  for (const auto& partition : status.partitions) {
    const auto& suspicion = partition.suspicion;
    worst.crashes = std::max(worst.crashes, suspicion.crashes);
    if (suspicion.probe_seq) worst.probe_seq = suspicion.probe_seq;
  }
  if (worst.crashes == 0) return "";
  auto text = fmt::format("relay crashes in a row: {}", worst.crashes);
  if (worst.probe_seq) {
    text += fmt::format("; events are sent one at a time, event {} now", worst.probe_seq->value());
  }
  return text + "\n";
}

Json age_json(std::optional<milliseconds> age) {
  return age ? Json(age->count()) : Json(nullptr);
}

Json route_json(const DeliveryCounts& row) {
  Json json;
  json["route"] = row.route;
  for (const auto& count : counts)
    json[count.name] = row.*count.member;
  json["oldest_due_age_ms"] = age_json(row.oldest_due_age);
  json["oldest_dispatched_age_ms"] = age_json(row.oldest_dispatched_age);
  return json;
}

}  // namespace

DeliveryCounts total_of(const Status& status) {
  DeliveryCounts total;
  total.route = "total";
  for (const auto& row : status.routes) {
    for (const auto& count : counts)
      total.*count.member += row.*count.member;
    total.oldest_due_age = older(total.oldest_due_age, row.oldest_due_age);
    total.oldest_dispatched_age = older(total.oldest_dispatched_age, row.oldest_dispatched_age);
  }
  return total;
}

std::string status_text(const Status& status, const JobStatus& jobs,
                        const std::vector<std::string>& routes,
                        const std::vector<ShownSchedule>& schedules, const Console& console) {
  auto text =
      events_text(status.events, console) + "\n" + routes_text(status, routes, console) + "\n";
  if (const auto shown = job_status_text(jobs, console); !shown.empty()) text += shown + "\n";
  text += relays_text(status) + suspicion_text(status);
  if (!status.paused_routes.empty()) {
    text += fmt::format("paused: {}. See `postrider route resume`.\n",
                        fmt::join(status.paused_routes, ", "));
  }
  return text + schedule_status_text(schedules);
}

std::string status_json(const Status& status, const JobStatus& jobs,
                        const std::vector<std::string>& routes,
                        const std::vector<ShownSchedule>& schedules) {
  Json json;
  json["events"]["total"] = status.events.total;
  json["events"]["unrouted"] = status.events.unrouted;
  json["events"]["oldest_unrouted_age_ms"] = age_json(status.events.oldest_unrouted_age);
  json["routes"] = Json::array();
  for (const auto& row : rows_of(status, routes))
    json["routes"].push_back(route_json(row));
  json["total"] = route_json(total_of(status));
  json["total"].erase("route");
  json.update(job_status_json(jobs));
  json["partitions"] = Json::array();
  for (const auto& partition : status.partitions) {
    Json each;
    each["partition"] = partition.partition.value();
    each["owner"] = partition.owner.empty() ? Json(nullptr) : Json(partition.owner);
    each["remaining_ms"] = age_json(partition.remaining);
    each["crashes"] = partition.suspicion.crashes;
    const auto& probe_seq = partition.suspicion.probe_seq;
    each["probe_seq"] = probe_seq ? Json(std::to_string(probe_seq->value())) : Json(nullptr);
    json["partitions"].push_back(std::move(each));
  }
  json["paused_routes"] = status.paused_routes;
  json["schedules"] = schedules_json(schedules);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace postrider::cli
