#pragma once
/// \file
/// A TOML text as a flat list of entries with their lines. Nothing is known here of what the keys
/// mean; toml++ is seen by document.cpp alone.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace postrider::config {

struct Value;
/// What no key takes: a table, a date, a number with a fraction. The text names it for messages.
struct Unusable {
  std::string kind;
};
struct Value {
  std::variant<std::string, std::int64_t, bool, std::vector<Value>, Unusable> content;
};

/// "a text", "a whole number", …
[[nodiscard]] std::string kind_of(const Value& value);

struct Entry {
  std::string section;  ///< the tables it stands in, joined by dots
  int element = -1;     ///< index into `Document::route_lines` or `schedule_lines`; -1 elsewhere
  std::string name;
  Value value;
  int line = 0;
};

struct Document {
  std::vector<Entry> entries;
  std::vector<int> route_lines;     ///< of each [[routes]]
  std::vector<int> schedule_lines;  ///< of each [[schedules]]
  std::string fault;                ///< why the text is no TOML; empty when it is
  int fault_line = 0;
};

[[nodiscard]] Document read_document(std::string_view text);

}  // namespace postrider::config
