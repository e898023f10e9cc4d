#include "config/schedule_check.hpp"

#include <set>
#include <string_view>

#include <fmt/format.h>

namespace postrider::config {
namespace {

// A fault that begins with the name of a key belongs to its line.
int line_of(const ScheduleText& text, std::string_view fault) {
  const auto found = text.key_lines.find(std::string(fault.substr(0, fault.find(':'))));
  return found == text.key_lines.end() ? text.line : found->second;
}

std::vector<std::string> faults_of(ScheduleSettings& settings, const ScheduleText& text) {
  auto& schedule = settings.schedule;
  std::vector<std::string> faults;
  if (!settings.aggregate.empty()) {
    const auto slash = settings.aggregate.find('/');
    if (slash == std::string::npos) {
      faults.emplace_back("aggregate: it has no slash. Write TYPE/ID, such as report/daily.");
    } else {
      schedule.aggregate =
          Aggregate{settings.aggregate.substr(0, slash), settings.aggregate.substr(slash + 1)};
    }
  }
  if (text.key_lines.contains("most_missed") && schedule.missed != Missed::all) {
    faults.emplace_back("most_missed: it needs missed = \"all\". Add that, or remove most_missed.");
  }
  const auto invalid = validate(schedule);
  faults.insert(faults.end(), invalid.begin(), invalid.end());
  return faults;
}

}  // namespace

std::vector<ScheduleFault> find_faults(std::vector<ScheduleSettings>& schedules,
                                       const std::vector<ScheduleText>& texts) {
  std::vector<ScheduleFault> found;
  std::set<std::string> names;
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    const auto& text = texts[i];
    const auto& name = schedules[i].schedule.name;
    if (text.faulty) continue;
    for (const auto& fault : faults_of(schedules[i], text))
      found.push_back({line_of(text, fault), fmt::format("schedule {}: {}", name, fault)});
    if (names.insert(name).second) continue;
    found.push_back({text.line, fmt::format("a second schedule is called {}. Give each a name of "
                                            "its own.",
                                            name)});
  }
  if (schedules.size() > Schedule::most) {
    found.push_back(
        {texts[Schedule::most].line, fmt::format("there are {} schedules. Give at most {}.",
                                                 schedules.size(), Schedule::most)});
  }
  return found;
}

}  // namespace postrider::config
