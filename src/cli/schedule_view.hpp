#pragma once
/// \file
/// Schedules as people and scripts see them: what the configuration says beside what the database
/// knows. Never a payload.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <postrider/schedule.hpp>
#include <postrider/schedule_store_values.hpp>

#include "cli/console.hpp"
#include "config/settings.hpp"

namespace postrider::cli {

enum class ScheduleStanding : std::uint8_t {
  active,
  late,          ///< a slot has come, and no relay has run it within `Schedule::on_time`
  paused,        ///< by a person
  changed,       ///< relays run another definition than the configuration here has
  unseen,        ///< in the configuration, and no relay has seen it yet
  unconfigured,  ///< a relay has seen it, and it is not in the configuration here
};

[[nodiscard]] std::string_view to_string(ScheduleStanding standing) noexcept;

struct ShownSchedule {
  ScheduleStanding standing = ScheduleStanding::active;
  ScheduleState state;                    ///< of an unseen one, what the configuration says
  std::optional<Timestamp> next_slot_at;  ///< by the configuration
};

/// By name.
[[nodiscard]] std::vector<ShownSchedule> shown_schedules(
    const std::vector<config::ScheduleSettings>& configured, const ScheduleStates& states);

[[nodiscard]] std::string schedules_text(const std::vector<ShownSchedule>& schedules,
                                         const Console& console);
[[nodiscard]] nlohmann::ordered_json schedules_json(const std::vector<ShownSchedule>& schedules);

/// One line for all that are late and one for all that are paused; empty when there is neither.
[[nodiscard]] std::string schedule_status_text(const std::vector<ShownSchedule>& schedules);

/// How many of them stand so.
[[nodiscard]] std::int64_t count_of(const std::vector<ShownSchedule>& schedules,
                                    ScheduleStanding standing);

}  // namespace postrider::cli
