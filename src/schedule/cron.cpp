#include "schedule/cron.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace postrider::schedule {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::local_days;
using std::chrono::minutes;

constexpr std::string_view blanks = " \t";
/// Longer is no expression that a person has written.
constexpr std::size_t most_bytes = 256;

struct Field {
  std::string_view name;
  int least = 0;
  int most = 0;
  std::string_view names;  ///< of three letters each, from `least` on
};

constexpr std::array fields{
    Field{"minute", 0, 59, {}},
    Field{"hour", 0, 23, {}},
    Field{"day of the month", 1, 31, {}},
    Field{"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
    Field{"day of the week", 0, 7, "sunmontuewedthufrisat"},
};
constexpr std::size_t name_size = 3;

struct Nickname {
  std::string_view name;
  std::string_view expression;
};

constexpr std::array nicknames{
    Nickname{"@hourly", "0 * * * *"}, Nickname{"@daily", "0 0 * * *"},
    Nickname{"@weekly", "0 0 * * 0"}, Nickname{"@monthly", "0 0 1 * *"},
    Nickname{"@yearly", "0 0 1 1 *"},
};

Error refused(std::string message) {
  return {ErrorCode::invalid_argument, Disposition::reject, std::move(message), "schedule", ""};
}

std::vector<std::string_view> split(std::string_view text, std::string_view at) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find_first_of(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words(std::string_view text) {
  auto parts = split(text, blanks);
  std::erase_if(parts, [](auto part) { return part.empty(); });
  return parts;
}

std::string lower(std::string_view text) {
  std::string made(text);
  std::transform(made.begin(), made.end(), made.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return made;
}

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto* const end = text.data() + text.size();
  const auto [rest, fault] = std::from_chars(text.data(), end, number);
  if (text.empty() || text.front() == '-' || fault != std::errc() || rest != end) {
    return std::nullopt;
  }
  return number;
}

std::optional<int> named_value(const Field& field, std::string_view text) {
  if (text.size() != name_size) return std::nullopt;
  const auto name = lower(text);
  for (std::size_t at = 0; at < field.names.size(); at += name_size) {
    if (field.names.substr(at, name_size) == name)
      return field.least + static_cast<int>(at / name_size);
  }
  return std::nullopt;
}

/// One field of one expression.
class FieldReader {
 public:
  explicit FieldReader(const Field& field) : field_(&field) {}

  Result<std::uint64_t> read(std::string_view text) const {
    std::uint64_t values = 0;
    for (const auto part : split(text, ",")) {
      const auto read = read_part(part);
      if (!read) return read;
      values |= *read;
    }
    return values;
  }

 private:
  [[nodiscard]] Error wrong(std::string_view text, std::string_view why) const {
    return refused(fmt::format("the {} '{}' {}", field_->name, text, why));
  }

  Result<std::uint64_t> read_part(std::string_view part) const {
    const auto slash = part.find('/');
    const auto base = part.substr(0, slash);
    int step = 1;
    if (slash != std::string_view::npos) {
      const auto given = number_of(part.substr(slash + 1));
      if (!given || *given < 1 || *given > field_->most) {
        return wrong(part, fmt::format("has a step that is not 1 to {}. Write */5 or 10-30/5.",
                                       field_->most));
      }
      step = *given;
    }
    if (base == "*") return bits(field_->least, field_->most, step);
    const auto dash = base.find('-');
    const auto first = value(base.substr(0, dash));
    if (!first) return first.error();
    if (dash == std::string_view::npos) {
      if (slash == std::string_view::npos) return bits(*first, *first, 1);
      return wrong(
          part, fmt::format("has a step and no range. Write {}-{}/{}.", base, field_->most, step));
    }
    return range(part, *first, base.substr(dash + 1), step);
  }

  Result<std::uint64_t> range(std::string_view part, int first, std::string_view end,
                              int step) const {
    auto last = value(end);
    if (!last) return last.error();
    // A week may end on Sunday: FRI-SUN.
    const bool sunday = field_->most == 7 && named_value(*field_, end) == 0;
    if (sunday && first > 0) last = 7;
    if (first > *last) {
      return wrong(part, "goes backwards. Write two ranges, separated by a comma.");
    }
    return bits(first, *last, step);
  }

  Result<int> value(std::string_view text) const {
    if (const auto named = named_value(*field_, text)) return *named;
    const auto number = number_of(text);
    if (number && *number >= field_->least && *number <= field_->most) return *number;
    return wrong(text, fmt::format("cannot be used. Give {} to {}{}.", field_->least, field_->most,
                                   field_->names.empty() ? ""
                                   : field_->most == 7   ? " or SUN to SAT"
                                                         : " or JAN to DEC"));
  }

  static std::uint64_t bits(int first, int last, int step) {
    std::uint64_t made = 0;
    for (int value = first; value <= last; value += step)
      made |= std::uint64_t{1} << static_cast<unsigned>(value);
    return made;
  }

  const Field* field_;
};

bool holds(std::uint64_t bits, unsigned value) {
  return ((bits >> value) & 1U) != 0;
}

constexpr std::uint64_t every_hour = (std::uint64_t{1} << 24U) - 1;

}  // namespace

Result<Cron::Fields> Cron::parse_fields(std::string_view text) {
  const auto parts = words(text);
  if (parts.size() != fields.size()) {
    return refused(fmt::format(
        "the expression '{}' has {} fields and not five. Write minute, hour, day of the month, "
        "month and day of the week, such as 30 2 * * *.",
        text, parts.size()));
  }
  std::array<std::uint64_t, fields.size()> values{};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto read = FieldReader(fields[i]).read(parts[i]);
    if (!read) return read.error();
    values[i] = *read;
  }
  const auto sundays = (values[4] >> 7U) & 1U;  // 7 is 0
  const auto weekdays = (values[4] & 0x7FU) | sundays;
  return Fields{values[0],
                values[1],
                values[2],
                values[3],
                weekdays,
                parts[2].front() == '*',
                parts[4].front() == '*'};
}

Result<Cron> Cron::parse(std::string_view text) {
  if (text.size() > most_bytes) {
    return refused(
        fmt::format("the expression has {} bytes. Write at most {}.", text.size(), most_bytes));
  }
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) {
    return refused("there is no expression. Write one such as 30 2 * * *, or @daily.");
  }
  if (text[begin] == '@') {
    const auto end = text.find_last_not_of(blanks);
    const auto name = lower(text.substr(begin, end - begin + 1));
    const auto* const known =
        std::find_if(nicknames.begin(), nicknames.end(),
                     [&](const Nickname& nickname) { return nickname.name == name; });
    if (known == nicknames.end()) {
      return refused(fmt::format(
          "'{}' is unknown. Write @hourly, @daily, @weekly, @monthly, @yearly, or five fields.",
          text));
    }
    text = known->expression;
  }
  const auto parsed = parse_fields(text);
  if (!parsed) return parsed.error();
  const Cron cron(*parsed);
  // The calendar repeats itself often enough: what does not match from here never does.
  if (!cron.first_from(LocalMinute(local_days(std::chrono::year{2000} / 1 / 1)))) {
    return refused(fmt::format("no date ever matches '{}'. Give a day that the month has.", text));
  }
  return cron;
}

std::optional<LocalMinute> Cron::first_from(LocalMinute from) const {
  auto day = std::chrono::floor<days>(from);
  const auto last = day + std::chrono::floor<days>(horizon);
  if (matches_day(day)) {
    if (const auto time = first_time_from(from - day)) return day + *time;
  }
  ++day;
  while (day <= last) {
    const std::chrono::year_month_day date(day);
    if (!holds(fields_.months, static_cast<unsigned>(date.month()))) {
      day = local_days((date.year() / date.month() + std::chrono::months(1)) / 1);
      continue;
    }
    if (matches_day(day)) return day + *first_time_from(minutes(0));
    ++day;
  }
  return std::nullopt;
}

bool Cron::matches(LocalMinute at) const {
  const auto day = std::chrono::floor<days>(at);
  return matches_day(day) && first_time_from(at - day) == at - day;
}

bool Cron::holds_every_hour() const noexcept {
  return fields_.hours == every_hour;
}

bool Cron::matches_day(local_days day) const {
  const std::chrono::year_month_day date(day);
  if (!holds(fields_.months, static_cast<unsigned>(date.month()))) return false;
  const bool of_month = holds(fields_.days, static_cast<unsigned>(date.day()));
  const bool of_week = holds(fields_.weekdays, std::chrono::weekday(day).c_encoding());
  const bool either = !fields_.any_day && !fields_.any_weekday;
  return either ? of_month || of_week : of_month && of_week;
}

std::optional<minutes> Cron::first_time_from(minutes from) const {
  const auto first_hour = std::chrono::floor<hours>(from);
  for (auto hour = first_hour; hour < hours(24); ++hour) {
    if (!holds(fields_.hours, static_cast<unsigned>(hour.count()))) continue;
    const auto least = hour == first_hour ? from - hour : minutes(0);
    for (auto minute = least; minute < hours(1); ++minute) {
      if (holds(fields_.minutes, static_cast<unsigned>(minute.count()))) return hour + minute;
    }
  }
  return std::nullopt;
}

}  // namespace postrider::schedule
