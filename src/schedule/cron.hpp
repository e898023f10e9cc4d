#pragma once
/// \file
/// A cron expression: five fields that a local time matches or not. Knows nothing of time zones.
///
///   minute 0-59, hour 0-23, day of month 1-31, month 1-12 or JAN-DEC, day of week 0-7 or SUN-SAT
///
/// A field is `*`, a value, a range `a-b`, or a list of these; a `*` and a range may have a step,
/// as in `*/15`. 0 and 7 are both Sunday. `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly`
/// stand for whole expressions.
///
/// Days: when both fields of days are restricted, a day that fits either one matches, as in every
/// cron; a field that begins with `*` does not count as restricted.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include <postrider/result.hpp>

namespace postrider::schedule {

/// A minute of some zone's wall clock.
using LocalMinute = std::chrono::local_time<std::chrono::minutes>;

class Cron {
 public:
  /// How far is looked for a match. The 29th of February of a certain day of the week may be 40
  /// years away, when a century without a leap day lies between.
  static constexpr std::chrono::years horizon{41};

  /// Errors: `invalid_argument` that names the field, and an expression that no date ever matches.
  [[nodiscard]] static Result<Cron> parse(std::string_view text);

  /// The first match at or after `from`; none within the horizon.
  [[nodiscard]] std::optional<LocalMinute> first_from(LocalMinute from) const;
  [[nodiscard]] bool matches(LocalMinute at) const;

  /// It counts hours, and not times of day: its hour field holds every hour.
  [[nodiscard]] bool holds_every_hour() const noexcept;

 private:
  /// One bit per value.
  struct Fields {
    std::uint64_t minutes = 0;
    std::uint64_t hours = 0;
    std::uint64_t days = 0;
    std::uint64_t months = 0;
    std::uint64_t weekdays = 0;  ///< 0 is Sunday
    bool any_day = false;        ///< the field of days begins with `*`
    bool any_weekday = false;
  };

  explicit Cron(const Fields& fields) : fields_(fields) {}
  [[nodiscard]] static Result<Fields> parse_fields(std::string_view text);
  [[nodiscard]] bool matches_day(std::chrono::local_days day) const;
  [[nodiscard]] std::optional<std::chrono::minutes> first_time_from(
      std::chrono::minutes from) const;

  Fields fields_;
};

}  // namespace postrider::schedule
