#pragma once
/// \file
/// A schedule: an event that is written again and again, at the times of a cron expression.
///
/// What the event becomes, routes say, as for any other: a job, a message, or both. The rules for
/// times that clocks skip and repeat stand in docs/operate/schedules.md.
///
/// Thread safety: values and functions without state.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/event.hpp>
#include <postrider/result.hpp>

namespace postrider {

/// What becomes of slots that passed while no relay was there to see them.
enum class Missed : std::uint8_t {
  skip,  ///< nothing: only a slot that is less than `Schedule::on_time` old is run
  one,   ///< the latest is run
  all,   ///< each is run, the latest `most_missed` of them, oldest first
};

[[nodiscard]] std::string_view to_string(Missed missed) noexcept;
[[nodiscard]] std::optional<Missed> parse_missed(std::string_view text) noexcept;

struct Schedule {
  static constexpr int greatest_most_missed = 100;
  /// Most schedules of one relay.
  static constexpr std::size_t most = 1000;
  /// A slot that is looked at within this time was not missed: no two slots are closer.
  static constexpr milliseconds on_time = std::chrono::minutes(1);

  std::string name;  ///< 1 to 64 of a-z, 0-9, '_', '-', '.'; renamed, it is another schedule
  /// Minute, hour, day of month, month, day of week: "30 2 * * MON-FRI"; or @hourly, @daily,
  /// @weekly, @monthly, @yearly.
  std::string cron;
  std::string time_zone = "UTC";  ///< a name of the tz database: "Europe/Berlin"

  std::string type;                    ///< of the event
  std::optional<Aggregate> aggregate;  ///< of the event
  std::string payload = "{}";          ///< of the event; application/json

  Missed missed = Missed::one;
  int most_missed = 10;  ///< 1 to `greatest_most_missed`; only with `Missed::all`

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// Headers of its events: the schedule's name, and the slot as RFC 3339 in UTC.
inline constexpr std::string_view schedule_header = "postrider-schedule";
inline constexpr std::string_view slot_header = "postrider-slot";

/// Every fault of `schedule` at once, one sentence each; empty when it can be used.
///
/// Blocking: reads the machine's tz database.
[[nodiscard]] std::vector<std::string> validate(const Schedule& schedule);

/// The first slot after `after`; none when it has faults or none is to come in 41 years.
[[nodiscard]] std::optional<Timestamp> next_slot(const Schedule& schedule, Timestamp after);

/// The event of one slot, without an id. Requires: `schedule` has no faults.
[[nodiscard]] NewEvent event_of(const Schedule& schedule, Timestamp slot);

/// A fingerprint of everything that `schedule` says: 64 hexadecimal digits.
[[nodiscard]] std::string definition_hash(const Schedule& schedule);

}  // namespace postrider
