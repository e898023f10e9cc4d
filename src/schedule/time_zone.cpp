#include "schedule/time_zone.hpp"

#include <exception>

#include <date/tz.h>
#include <fmt/format.h>

namespace postrider::schedule {
namespace {

/// Without a tz database there is still this one.
constexpr std::string_view utc = "UTC";

const date::time_zone* located(const std::string& name) {
  try {
    const auto* zone = date::locate_zone(name);
    // Its file is read when it is first asked, and that must not fail later.
    static_cast<void>(zone->get_info(SystemSeconds()));
    return zone;
  } catch (const std::exception&) {  // not there, unreadable, or no database at all
    return nullptr;
  }
}

}  // namespace

Result<TimeZone> TimeZone::find(const std::string& name) {
  if (name == utc) return TimeZone(nullptr);
  const auto* zone = located(name);
  if (zone != nullptr) return TimeZone(zone);
  return Error{ErrorCode::invalid_argument, Disposition::reject,
               fmt::format("the time zone '{}' is unknown on this machine. Give a name such as "
                           "Europe/Berlin or UTC, and see that the package tzdata is installed.",
                           name),
               "schedule", ""};
}

ZoneSpan TimeZone::span_of(SystemSeconds at) const {
  if (zone_ == nullptr) return {SystemSeconds::min(), SystemSeconds::max()};
  const auto* zone = static_cast<const date::time_zone*>(zone_);
  const auto info = zone->get_info(at);
  const auto before = zone->get_info(info.begin - std::chrono::seconds(1));
  return {info.begin, info.end, info.offset, before.offset};
}

}  // namespace postrider::schedule
