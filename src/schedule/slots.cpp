#include "schedule/slots.hpp"

#include <algorithm>

namespace postrider::schedule {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using LocalSecond = std::chrono::local_seconds;

LocalSecond local(SystemSeconds at, seconds offset) {
  return LocalSecond((at + offset).time_since_epoch());
}

SystemSeconds system(LocalMinute at, seconds offset) {
  return SystemSeconds(at.time_since_epoch() - offset);
}

}  // namespace

Result<Slots> Slots::make(const std::string& cron, const std::string& time_zone) {
  const auto parsed = Cron::parse(cron);
  if (!parsed) return parsed.error();
  const auto zone = TimeZone::find(time_zone);
  if (!zone) return zone.error();
  return Slots(*parsed, *zone);
}

std::optional<Timestamp> Slots::next(Timestamp after) const {
  const auto start = std::chrono::floor<seconds>(after);
  const auto last = start + std::chrono::floor<seconds>(Cron::horizon);
  auto span = zone_.span_of(start);
  auto from = std::max(std::chrono::floor<minutes>(local(start, span.offset)) + minutes(1),
                       first_reading_of(span));
  while (true) {
    const auto found = cron_.first_from(from);
    if (!found) return std::nullopt;
    if (const auto at = system(*found, span.offset); at < span.end) return Timestamp(at);
    if (span.end > last) return std::nullopt;
    span = zone_.span_of(span.end);
    if (jumps_over_a_match(span)) return Timestamp(span.begin);
    from = first_reading_of(span);
  }
}

// Of a repeated time, the second pass has no slots of its own unless real time counts.
LocalMinute Slots::first_reading_of(const ZoneSpan& span) const {
  const auto offset =
      cron_.holds_every_hour() ? span.offset : std::max(span.offset, span.previous_offset);
  return std::chrono::ceil<minutes>(local(span.begin, offset));
}

bool Slots::jumps_over_a_match(const ZoneSpan& span) const {
  if (cron_.holds_every_hour() || span.offset <= span.previous_offset) return false;
  const auto first =
      cron_.first_from(std::chrono::ceil<minutes>(local(span.begin, span.previous_offset)));
  return first && *first < local(span.begin, span.offset);
}

}  // namespace postrider::schedule
