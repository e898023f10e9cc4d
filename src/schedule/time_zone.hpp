#pragma once
/// \file
/// A time zone of the tz database, as spans of one offset each.
///
/// Thread safety: values; what they stand for lives as long as the process.

#include <chrono>
#include <string>

#include <postrider/result.hpp>

namespace postrider::schedule {

using SystemSeconds = std::chrono::sys_time<std::chrono::seconds>;

/// A span of time in which the zone's clocks are not moved: from `begin`, before `end`.
struct ZoneSpan {
  SystemSeconds begin;
  SystemSeconds end;
  std::chrono::seconds offset{0};           ///< local time is UTC plus this
  std::chrono::seconds previous_offset{0};  ///< that of the span before
};

class TimeZone {
 public:
  /// The zone of this name: "UTC", which is always there, or "Europe/Berlin".
  ///
  /// Blocking: reads the machine's tz database when it meets a zone for the first time.
  /// Errors: `invalid_argument`.
  [[nodiscard]] static Result<TimeZone> find(const std::string& name);

  /// The span that holds `at`.
  [[nodiscard]] ZoneSpan span_of(SystemSeconds at) const;

 private:
  explicit TimeZone(const void* zone) : zone_(zone) {}

  const void* zone_;  ///< a date::time_zone; null for UTC
};

}  // namespace postrider::schedule
