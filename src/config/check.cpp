#include "config/check.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "config/duration.hpp"
#include "config/suggestion.hpp"

namespace postrider::config {
namespace {

constexpr milliseconds least_delay{1};
constexpr milliseconds most_delay = std::chrono::hours(24 * 30);

std::string shown(const Key& key, const Value& value) {
  if (key.expands) return kind_of(value);
  if (const auto* text = std::get_if<std::string>(&value.content)) {
    return fmt::format("\"{}\"", *text);
  }
  if (const auto* number = std::get_if<std::int64_t>(&value.content)) {
    return std::to_string(*number);
  }
  return kind_of(value);
}

Error refusal(const Key& key, std::string_view what, std::string_view advice = {}) {
  return {ErrorCode::config_invalid, Disposition::stop,
          fmt::format("{} is {}. Give {}.{}{}", full_name(key), what, range_text(key),
                      advice.empty() ? "" : " ", advice),
          "config", ""};
}

Error wrong_type(const Key& key, const Value& value) {
  return refusal(key, shown(key, value) + ", which cannot be used");
}

Error out_of_range(const Key& key, const Value& value) {
  return refusal(key, shown(key, value) + ", which is out of range");
}

Result<Checked> check_text(const Key& key, const Value& value) {
  const auto* text = std::get_if<std::string>(&value.content);
  if (text == nullptr) return wrong_type(key, value);
  if (text->empty()) return refusal(key, "empty", "Leave the key out for its default.");
  const auto size = static_cast<std::int64_t>(text->size());
  if (size < key.least || size > key.most) {
    return refusal(key, fmt::format("{} bytes long", size));
  }
  const auto allowed = std::string_view("abcdefghijklmnopqrstuvwxyz0123456789_");
  if (key.identifier && text->find_first_not_of(allowed) != std::string::npos) {
    return wrong_type(key, value);
  }
  return Checked(*text);
}

Result<Checked> check_integer(const Key& key, const Value& value) {
  const auto* number = std::get_if<std::int64_t>(&value.content);
  if (number == nullptr) return wrong_type(key, value);
  if (*number < key.least || *number > key.most) return out_of_range(key, value);
  return Checked(*number);
}

std::optional<milliseconds> duration_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value.content)) return parse_duration(*text);
  if (const auto* number = std::get_if<std::int64_t>(&value.content)) {
    return parse_duration(std::to_string(*number));
  }
  return std::nullopt;
}

Result<Checked> check_duration(const Key& key, const Value& value) {
  const auto duration = duration_of(value);
  if (!duration) return wrong_type(key, value);
  if (duration->count() < key.least || duration->count() > key.most) {
    return out_of_range(key, value);
  }
  return Checked(std::int64_t{duration->count()});
}

// Zero is refused: to one it means "keep nothing", to another "delete nothing".
Result<Checked> check_retention(const Key& key, const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value.content); text && *text == "off") {
    return Checked(std::int64_t{0});
  }
  return check_duration(key, value);
}

Result<Checked> check_boolean(const Key& key, const Value& value) {
  const auto* boolean = std::get_if<bool>(&value.content);
  if (boolean == nullptr) return wrong_type(key, value);
  return Checked(*boolean);
}

Result<Checked> check_choice(const Key& key, const Value& value) {
  const auto* text = std::get_if<std::string>(&value.content);
  if (text == nullptr) return wrong_type(key, value);
  if (std::find(key.choices.begin(), key.choices.end(), *text) != key.choices.end()) {
    return Checked(*text);
  }
  const auto near = nearest(*text, key.choices);
  return refusal(key, shown(key, value) + ", which cannot be used",
                 near ? fmt::format("Did you mean {}?", *near) : "");
}

const std::vector<Value>* list_of(const Key& key, const Value& value) {
  const auto* list = std::get_if<std::vector<Value>>(&value.content);
  if (list == nullptr) return nullptr;
  const auto size = static_cast<std::int64_t>(list->size());
  return size < key.least || size > key.most ? nullptr : list;
}

Error wrong_list(const Key& key, const Value& value) {
  const auto* list = std::get_if<std::vector<Value>>(&value.content);
  if (list == nullptr) return wrong_type(key, value);
  if (list->empty()) return refusal(key, "empty");
  return refusal(key, fmt::format("a list of {}", list->size()));
}

Result<Checked> check_texts(const Key& key, const Value& value) {
  const auto* list = list_of(key, value);
  if (list == nullptr) return wrong_list(key, value);
  std::vector<std::string> texts;
  for (const auto& element : *list) {
    const auto* text = std::get_if<std::string>(&element.content);
    if (text == nullptr || text->empty()) {
      return refusal(key, fmt::format("a list that holds {}", shown(key, element)));
    }
    texts.push_back(*text);
  }
  return Checked(std::move(texts));
}

Result<Checked> check_durations(const Key& key, const Value& value) {
  const auto* list = list_of(key, value);
  if (list == nullptr) return wrong_list(key, value);
  std::vector<milliseconds> durations;
  for (const auto& element : *list) {
    const auto duration = duration_of(element);
    if (!duration || *duration < least_delay || *duration > most_delay) {
      return refusal(key, fmt::format("a list that holds {}", shown(key, element)));
    }
    durations.push_back(*duration);
  }
  return Checked(std::move(durations));
}

Value list_from_text(std::string_view text) {
  std::vector<Value> values;
  while (!text.empty()) {
    const auto part = text.substr(0, text.find(','));
    values.push_back({std::string(part)});
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return {std::move(values)};
}

}  // namespace

Result<Checked> check_value(const Key& key, const Value& value) {
  switch (key.type) {
    case KeyType::text:
      return check_text(key, value);
    case KeyType::integer:
      return check_integer(key, value);
    case KeyType::duration:
      return check_duration(key, value);
    case KeyType::retention:
      return check_retention(key, value);
    case KeyType::boolean:
      return check_boolean(key, value);
    case KeyType::choice:
      return check_choice(key, value);
    case KeyType::texts:
      return check_texts(key, value);
    case KeyType::durations:
      return check_durations(key, value);
  }
  return wrong_type(key, value);
}

Value value_from_text(const Key& key, std::string_view text) {
  if (key.type == KeyType::integer) {
    std::int64_t number = 0;
    const auto* const end = text.data() + text.size();
    const auto [rest, fault] = std::from_chars(text.data(), end, number);
    if (fault == std::errc() && rest == end) return {number};
  }
  if (key.type == KeyType::boolean && (text == "true" || text == "false")) return {text == "true"};
  if (key.type == KeyType::texts || key.type == KeyType::durations) return list_from_text(text);
  return {std::string(text)};
}

}  // namespace postrider::config
