#include "base/timestamp_text.hpp"

#include <fmt/format.h>

namespace postrider {
namespace {

constexpr std::string_view form = "0000-00-00T00:00:00.000000Z";

bool has_form(std::string_view text) noexcept {
  if (text.size() != form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (form[i] == '0' ? !digit : text[i] != form[i]) return false;
  }
  return true;
}

/// Requires: `text` holds digits only.
int number(std::string_view text, std::size_t from, std::size_t digits) noexcept {
  int value = 0;
  for (const char digit : text.substr(from, digits))
    value = value * 10 + (digit - '0');
  return value;
}

}  // namespace

std::string timestamp_text(Timestamp time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

std::optional<Timestamp> parse_timestamp(std::string_view text) noexcept {
  if (!has_form(text)) return std::nullopt;
  const std::chrono::year_month_day date(
      std::chrono::year(number(text, 0, 4)),
      std::chrono::month(static_cast<unsigned>(number(text, 5, 2))),
      std::chrono::day(static_cast<unsigned>(number(text, 8, 2))));
  const int hour = number(text, 11, 2);
  const int minute = number(text, 14, 2);
  const int second = number(text, 17, 2);
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return Timestamp(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
         std::chrono::minutes(minute) + std::chrono::seconds(second) +
         std::chrono::microseconds(number(text, 20, 6));
}

}  // namespace postrider
