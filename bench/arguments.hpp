#pragma once
/// \file
/// Command lines of the programs that only `bench` starts: `--name value` pairs, and nothing else.

#include <charconv>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

namespace postrider::bench {

/// Throws what is wrong with a command line.
class Arguments {
 public:
  Arguments(int count, char** words, int first = 1) {
    for (int i = first; i < count; ++i) {
      const std::string word = words[i];
      if (!word.starts_with("--")) throw std::invalid_argument("not an option: " + word);
      const bool has_value = i + 1 < count && !std::string(words[i + 1]).starts_with("--");
      values_[word.substr(2)] = has_value ? words[++i] : "";
    }
  }

  [[nodiscard]] bool has(const std::string& name) const { return values_.contains(name); }
  [[nodiscard]] std::string text(const std::string& name, const std::string& absent = "") const {
    const auto found = values_.find(name);
    return found == values_.end() ? absent : found->second;
  }
  [[nodiscard]] std::int64_t number(const std::string& name, std::int64_t absent) const {
    if (!has(name)) return absent;
    const auto value = text(name);
    std::int64_t number = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    if (read.ec != std::errc() || read.ptr != value.data() + value.size() || number < 0) {
      throw std::invalid_argument("--" + name + " takes a number, not '" + value + "'");
    }
    return number;
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace postrider::bench
