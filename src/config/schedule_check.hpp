#pragma once
/// \file
/// What no single key of a schedule can tell: whether its expression, zone and event can be used,
/// and whether its name is its own.

#include <map>
#include <string>
#include <vector>

#include "config/settings.hpp"

namespace postrider::config {

/// Where a schedule stands in the file.
struct ScheduleText {
  int line = 0;
  std::map<std::string, int> key_lines;
  bool faulty = false;  ///< something was said of it already
};

struct ScheduleFault {
  int line = 0;
  std::string message;
};

/// Takes the aggregates apart, and finds all faults at once; says nothing of what is `faulty`.
/// Requires: both lists are of the same schedules.
[[nodiscard]] std::vector<ScheduleFault> find_faults(std::vector<ScheduleSettings>& schedules,
                                                     const std::vector<ScheduleText>& texts);

}  // namespace postrider::config
