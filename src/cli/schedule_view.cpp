#include "cli/schedule_view.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/json_text.hpp"
#include "cli/table.hpp"

namespace postrider::cli {
namespace {

using Json = nlohmann::ordered_json;

Style style_of(ScheduleStanding standing) {
  switch (standing) {
    case ScheduleStanding::active:
      return Style::green;
    case ScheduleStanding::late:
      return Style::red;
    case ScheduleStanding::paused:
    case ScheduleStanding::changed:
      return Style::yellow;
    case ScheduleStanding::unseen:
    case ScheduleStanding::unconfigured:
      return Style::plain;
  }
  return Style::plain;
}

ScheduleState state_of(const Schedule& schedule) {
  ScheduleState state;
  state.name = schedule.name;
  state.cron = schedule.cron;
  state.time_zone = schedule.time_zone;
  state.type = schedule.type;
  state.missed = schedule.missed;
  state.most_missed = schedule.most_missed;
  return state;
}

ScheduleStanding standing_of(const Schedule& schedule, const ScheduleState& state, Timestamp now) {
  if (state.paused_at) return ScheduleStanding::paused;
  if (state.definition_hash != definition_hash(schedule)) return ScheduleStanding::changed;
  const auto slot = next_slot(schedule, state.decided_until);
  const bool late = slot && now - *slot >= Schedule::on_time;
  return late ? ScheduleStanding::late : ScheduleStanding::active;
}

ShownSchedule shown(const Schedule& schedule, const ScheduleState& state, Timestamp now) {
  ShownSchedule made{standing_of(schedule, state, now), state, std::nullopt};
  if (made.standing == ScheduleStanding::active || made.standing == ScheduleStanding::late) {
    made.next_slot_at = next_slot(schedule, std::max(now, state.decided_until));
  }
  return made;
}

std::vector<std::string_view> names_of(const std::vector<ShownSchedule>& schedules,
                                       ScheduleStanding standing) {
  std::vector<std::string_view> names;
  for (const auto& schedule : schedules) {
    if (schedule.standing == standing) names.push_back(schedule.state.name);
  }
  return names;
}

}  // namespace

std::string_view to_string(ScheduleStanding standing) noexcept {
  switch (standing) {
    case ScheduleStanding::active:
      return "active";
    case ScheduleStanding::late:
      return "late";
    case ScheduleStanding::paused:
      return "paused";
    case ScheduleStanding::changed:
      return "changed";
    case ScheduleStanding::unseen:
      return "not seen by a relay";
    case ScheduleStanding::unconfigured:
      return "not in the configuration";
  }
  return "active";
}

std::vector<ShownSchedule> shown_schedules(const std::vector<config::ScheduleSettings>& configured,
                                           const ScheduleStates& states) {
  std::map<std::string, ShownSchedule> by_name;
  for (const auto& state : states.schedules)
    by_name[state.name] = {ScheduleStanding::unconfigured, state, std::nullopt};
  for (const auto& [schedule, aggregate] : configured) {
    const auto found = by_name.find(schedule.name);
    if (found == by_name.end()) {
      by_name[schedule.name] = {ScheduleStanding::unseen, state_of(schedule), std::nullopt};
    } else {
      found->second = shown(schedule, found->second.state, states.now);
    }
  }
  std::vector<ShownSchedule> sorted;
  for (auto& [name, schedule] : by_name)
    sorted.push_back(std::move(schedule));
  return sorted;
}

std::string schedules_text(const std::vector<ShownSchedule>& schedules, const Console& console) {
  Table table({{"schedule"},
               {"state"},
               {"cron"},
               {"time_zone"},
               {"type"},
               {"next slot"},
               {"last slot"},
               {"last event"},
               {"reason"}});
  for (const auto& [standing, state, next] : schedules) {
    table.add({{state.name},
               {std::string(to_string(standing)), style_of(standing)},
               {state.cron},
               {state.time_zone},
               {state.type},
               {text_if(next)},
               {text_if(state.last_slot_at)},
               {state.last_event_id ? state.last_event_id->value().to_string() : ""},
               {state.reason}});
  }
  return table.text(console);
}

Json schedules_json(const std::vector<ShownSchedule>& schedules) {
  auto json = Json::array();
  for (const auto& [standing, state, next] : schedules) {
    Json each;
    each["schedule"] = state.name;
    each["state"] = to_string(standing);
    each["cron"] = state.cron;
    each["time_zone"] = state.time_zone;
    each["type"] = state.type;
    each["missed"] = to_string(state.missed);
    each["next_slot_at"] = json_if(next);
    each["last_slot_at"] = json_if(state.last_slot_at);
    each["last_event_id"] =
        state.last_event_id ? Json(state.last_event_id->value().to_string()) : Json(nullptr);
    each["paused_at"] = json_if(state.paused_at);
    each["paused_by"] = state.paused_at ? Json(state.paused_by) : Json(nullptr);
    each["reason"] = state.reason;
    json.push_back(std::move(each));
  }
  return json;
}

std::string schedule_status_text(const std::vector<ShownSchedule>& schedules) {
  std::string text;
  if (const auto late = names_of(schedules, ScheduleStanding::late); !late.empty()) {
    text += fmt::format("late schedules: {}. Is a relay with this configuration running?\n",
                        fmt::join(late, ", "));
  }
  if (const auto paused = names_of(schedules, ScheduleStanding::paused); !paused.empty()) {
    text += fmt::format("paused schedules: {}. See `postrider schedule resume`.\n",
                        fmt::join(paused, ", "));
  }
  return text;
}

std::int64_t count_of(const std::vector<ShownSchedule>& schedules, ScheduleStanding standing) {
  return std::count_if(schedules.begin(), schedules.end(), [&](const ShownSchedule& schedule) {
    return schedule.standing == standing;
  });
}

}  // namespace postrider::cli
