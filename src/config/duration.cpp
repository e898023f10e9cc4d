#include "config/duration.hpp"

#include <array>
#include <charconv>
#include <cstdint>

namespace postrider::config {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t in_ms;
};
// From the largest on. A bare number is seconds.
constexpr std::array units{Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000},
                           Unit{"s", 1000},       Unit{"ms", 1},        Unit{"", 1000}};
constexpr std::size_t named_units = units.size() - 1;
constexpr std::int64_t most_ms = 1'000'000'000'000'000;  // far from overflow wherever it is added

}  // namespace

std::optional<milliseconds> parse_duration(std::string_view text) {
  std::int64_t number = 0;
  const auto* const end = text.data() + text.size();
  const auto [rest, fault] = std::from_chars(text.data(), end, number);
  if (fault != std::errc() || number < 0 || text.front() == '-') return std::nullopt;
  const std::string_view name(rest, static_cast<std::size_t>(end - rest));
  for (const auto& unit : units) {
    if (unit.name == name && number <= most_ms / unit.in_ms) {
      return milliseconds(number * unit.in_ms);
    }
  }
  return std::nullopt;
}

std::string duration_text(milliseconds duration) {
  for (std::size_t i = 0; i < named_units; ++i) {
    const auto& unit = units.at(i);
    if (duration.count() != 0 && duration.count() % unit.in_ms == 0) {
      return std::to_string(duration.count() / unit.in_ms).append(unit.name);
    }
  }
  return "0s";
}

}  // namespace postrider::config
