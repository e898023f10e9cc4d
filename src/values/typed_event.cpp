#include <postrider/typed_event.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/timestamp_text.hpp"

namespace postrider {
namespace {

Error type_error(std::string_view wanted) {
  return field_error(fmt::format("is not {}. Send it as the event's type says.", wanted));
}

Error range_error() {
  return field_error("is out of the range of its type. Send a smaller number, or widen the type.");
}

/// Reads exactly `digits` digits at the front of `text` and takes them away.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  int number = 0;
  if (text.size() < digits) return std::nullopt;
  const auto part = text.substr(0, digits);
  if (part.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  std::from_chars(part.data(), part.data() + part.size(), number);
  text.remove_prefix(digits);
  return number;
}

bool take(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<std::chrono::sys_days> take_date(std::string_view& text) {
  const auto year = take_number(text, 4);
  if (!year || !take(text, '-')) return std::nullopt;
  const auto month = take_number(text, 2);
  if (!month || !take(text, '-')) return std::nullopt;
  const auto day = take_number(text, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date);
}

std::optional<std::chrono::seconds> take_time_of_day(std::string_view& text) {
  const auto hours = take_number(text, 2);
  if (!hours || *hours > 23 || !take(text, ':')) return std::nullopt;
  const auto minutes = take_number(text, 2);
  if (!minutes || *minutes > 59 || !take(text, ':')) return std::nullopt;
  const auto seconds = take_number(text, 2);
  if (!seconds || *seconds > 59) return std::nullopt;
  return std::chrono::seconds(*hours * 3600 + *minutes * 60 + *seconds);
}

/// None is no fraction; more than six digits would be lost, so they are no time.
std::optional<std::chrono::microseconds> take_fraction(std::string_view& text) {
  if (!take(text, '.')) return std::chrono::microseconds(0);
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > 6) return std::nullopt;
  int number = *take_number(text, digits);
  for (auto i = digits; i < 6; ++i)
    number *= 10;
  return std::chrono::microseconds(number);
}

std::optional<Timestamp> parse_time(std::string_view text) {
  const auto date = take_date(text);
  if (!date || !take(text, 'T')) return std::nullopt;
  const auto time = take_time_of_day(text);
  if (!time) return std::nullopt;
  const auto fraction = take_fraction(text);
  if (!fraction || text != "Z") return std::nullopt;
  return Timestamp(*date + *time + *fraction);
}

}  // namespace

Error field_error(std::string_view problem) {
  return {ErrorCode::invalid_argument, Disposition::reject, fmt::format(" {}", problem), "event",
          ""};
}

Error in_field(std::string_view name, Error error) {
  const bool ends_path = error.message.starts_with(' ') || error.message.starts_with('[');
  error.message = fmt::format("{}{}{}", name, ends_path ? "" : ".", error.message);
  return error;
}

Error in_item(std::size_t index, Error error) {
  const bool ends_path = error.message.starts_with(' ') || error.message.starts_with('[');
  error.message = fmt::format("[{}]{}{}", index, ends_path ? "" : ".", error.message);
  return error;
}

Error in_event(Error error) {
  const bool has_no_name = error.message.starts_with(' ') || error.message.starts_with('[');
  if (has_no_name) error.message = "the event" + error.message;
  return error;
}

FieldValue to_field(Timestamp time) {
  return {timestamp_text(time)};
}

Result<Timestamp> timestamp_from(const FieldValue& value) {
  const auto text = text_from(value);
  if (text) {
    if (const auto time = parse_time(*text)) return *time;
  }
  return type_error("a time in UTC such as 2026-01-31T12:00:00.5Z");
}

Result<std::int64_t> signed_from(const FieldValue& value, std::int64_t least, std::int64_t most) {
  std::int64_t number = 0;
  if (const auto* integer = std::get_if<std::int64_t>(&value.content)) {
    number = *integer;
  } else if (const auto* large = std::get_if<std::uint64_t>(&value.content)) {
    if (!std::in_range<std::int64_t>(*large)) return range_error();
    number = static_cast<std::int64_t>(*large);
  } else {
    return type_error("an integer");
  }
  if (number < least || number > most) return range_error();
  return number;
}

Result<std::uint64_t> unsigned_from(const FieldValue& value, std::uint64_t most) {
  std::uint64_t number = 0;
  if (const auto* large = std::get_if<std::uint64_t>(&value.content)) {
    number = *large;
  } else if (const auto* integer = std::get_if<std::int64_t>(&value.content)) {
    if (*integer < 0) return range_error();
    number = static_cast<std::uint64_t>(*integer);
  } else {
    return type_error("an integer");
  }
  if (number > most) return range_error();
  return number;
}

Result<double> number_from(const FieldValue& value, double most) {
  double number = 0;
  if (const auto* floating = std::get_if<FieldNumber>(&value.content)) {
    number = floating->value;
  } else if (const auto* integer = std::get_if<std::int64_t>(&value.content)) {
    number = static_cast<double>(*integer);
  } else if (const auto* large = std::get_if<std::uint64_t>(&value.content)) {
    number = static_cast<double>(*large);
  } else {
    return type_error("a number");
  }
  if (std::isfinite(number) && std::abs(number) > most) return range_error();
  return number;
}

Result<bool> boolean_from(const FieldValue& value) {
  if (const auto* boolean = std::get_if<bool>(&value.content)) return *boolean;
  return type_error("true or false");
}

Result<std::string> text_from(const FieldValue& value) {
  if (const auto* text = std::get_if<std::string>(&value.content)) return *text;
  return type_error("text");
}

Result<const FieldItems*> items_from(const FieldValue& value) {
  if (const auto* items = std::get_if<FieldItems>(&value.content)) return items;
  return type_error("a list");
}

Result<const FieldMembers*> members_from(const FieldValue& value) {
  if (const auto* members = std::get_if<FieldMembers>(&value.content)) return members;
  return type_error("an object");
}

const FieldValue* find_member(const FieldMembers& members, std::string_view name) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const auto& member) { return member.name == name; });
  return found == members.end() ? nullptr : &found->value;
}

Error wrong_event_type(std::string_view wanted, std::string_view given) {
  return {ErrorCode::invalid_argument, Disposition::reject,
          fmt::format("the event is of type '{}' and was to be read as '{}'. Choose the struct by "
                      "the type of the message.",
                      given, wanted),
          "event", ""};
}

}  // namespace postrider
