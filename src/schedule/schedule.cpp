#include <postrider/schedule.hpp>

#include <fmt/format.h>

#include "schedule/slots.hpp"
#include "values/job_check.hpp"
#include "values/range_check.hpp"

// What needs no time zone stands in src/values.
namespace postrider {

std::vector<std::string> validate(const Schedule& schedule) {
  std::vector<std::string> faults;
  if (!is_plain_name(schedule.name)) {
    faults.push_back(fmt::format(
        "the name '{}' cannot be used. Give 1 to 64 characters of a-z, 0-9, '_', '-' and '.'.",
        schedule.name));
  }
  if (const auto cron = schedule::Cron::parse(schedule.cron); !cron) {
    faults.push_back("cron: " + cron.error().message);
  }
  if (const auto zone = schedule::TimeZone::find(schedule.time_zone); !zone) {
    faults.push_back("time_zone: " + zone.error().message);
  }
  if (const auto event = check(event_of(schedule, Timestamp())); !event) {
    faults.push_back("its event: " + event.error().message);
  }
  check_number(faults, "most_missed", schedule.most_missed, 1, Schedule::greatest_most_missed);
  return faults;
}

std::optional<Timestamp> next_slot(const Schedule& schedule, Timestamp after) {
  const auto slots = schedule::Slots::make(schedule.cron, schedule.time_zone);
  return slots ? slots->next(after) : std::nullopt;
}

}  // namespace postrider
