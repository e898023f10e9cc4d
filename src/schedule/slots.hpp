#pragma once
/// \file
/// The slots of a schedule: the moments at which it runs.
///
/// Where clocks are moved, two rules, chosen by the hour field:
///
///   every hour   counts real time: each minute that passes and whose local reading matches is a
///                slot. A repeated hour has its slots twice, a skipped one has none.
///   otherwise    times of day: each local reading that matches is one slot. A repeated reading
///                counts at its first pass; those that are skipped are one slot, at the jump.

#include <chrono>
#include <optional>
#include <string>

#include <postrider/clock.hpp>
#include <postrider/result.hpp>

#include "schedule/cron.hpp"
#include "schedule/time_zone.hpp"

namespace postrider::schedule {

class Slots {
 public:
  /// Errors: of `Cron::parse` and `TimeZone::find`.
  [[nodiscard]] static Result<Slots> make(const std::string& cron, const std::string& time_zone);

  /// The first slot after `after`; none within the horizon of `Cron`.
  [[nodiscard]] std::optional<Timestamp> next(Timestamp after) const;

 private:
  Slots(const Cron& cron, const TimeZone& zone) : cron_(cron), zone_(zone) {}
  [[nodiscard]] LocalMinute first_reading_of(const ZoneSpan& span) const;
  [[nodiscard]] bool jumps_over_a_match(const ZoneSpan& span) const;

  Cron cron_;
  TimeZone zone_;
};

}  // namespace postrider::schedule
