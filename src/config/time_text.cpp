#include "config/time_text.hpp"

#include <string>

#include "base/timestamp_text.hpp"

namespace postrider::config {
namespace {

constexpr std::size_t length_to_seconds = 19;  // of "2026-12-01T08:00:00"
constexpr std::size_t most_digits = 6;         // of the second
constexpr std::string_view zone_form = "+00:00";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// How far the zone is ahead of UTC.
std::optional<std::chrono::minutes> offset_of(std::string_view zone) {
  if (zone == "Z") return std::chrono::minutes(0);
  if (zone.size() != zone_form.size() || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':') {
    return std::nullopt;
  }
  for (const auto place : {1U, 2U, 4U, 5U}) {
    if (!is_digit(zone[place])) return std::nullopt;
  }
  const std::chrono::minutes ahead(((zone[1] - '0') * 10 + (zone[2] - '0')) * 60 +
                                   (zone[4] - '0') * 10 + (zone[5] - '0'));
  return zone[0] == '-' ? -ahead : ahead;
}

}  // namespace

std::optional<Timestamp> parse_time(std::string_view text) {
  if (text.size() <= length_to_seconds) return std::nullopt;
  auto zone = text.substr(length_to_seconds);
  std::string digits;
  if (zone.front() == '.') {
    zone.remove_prefix(1);
    while (!zone.empty() && is_digit(zone.front())) {
      digits += zone.front();
      zone.remove_prefix(1);
    }
    if (digits.empty() || digits.size() > most_digits) return std::nullopt;
  }
  const auto offset = offset_of(zone);
  if (!offset) return std::nullopt;
  digits.resize(most_digits, '0');
  const auto there =
      parse_timestamp(std::string(text.substr(0, length_to_seconds)) + "." + digits + "Z");
  if (!there) return std::nullopt;
  return *there - *offset;
}

}  // namespace postrider::config
