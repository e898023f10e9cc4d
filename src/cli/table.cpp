#include "cli/table.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace postrider::cli {
namespace {

constexpr std::string_view gap = "  ";

std::string padded(std::string_view text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, columns_of(text)), ' ');
  return right ? space + std::string(text) : std::string(text) + space;
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;
  }));
}

std::string harmless(std::string_view text) {
  // JSON's rules are at hand and known to be right: escape, and take the quotation marks off.
  const nlohmann::json json(text);
  using Handler = nlohmann::json::error_handler_t;
  auto shown = json.dump(-1, ' ', false, Handler::replace);
  const bool steers = std::any_of(shown.begin(), shown.end(), [](char c) { return c == '\x7f'; }) ||
                      shown.find("\xc2") != std::string::npos ||
                      shown.find("\xe2\x80") != std::string::npos ||
                      shown.find("\xe2\x81") != std::string::npos;
  if (steers) shown = json.dump(-1, ' ', true, Handler::replace);
  return shown.substr(1, shown.size() - 2);
}

void Table::add(std::vector<Cell> row) {
  for (auto& cell : row)
    cell.text = harmless(cell.text);
  row.resize(columns_.size());
  rows_.push_back(std::move(row));
}

std::string Table::text(const Console& console) const {
  std::vector<std::size_t> widths;
  std::size_t total = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    auto width = columns_of(columns_[i].name);
    for (const auto& row : rows_)
      width = std::max(width, columns_of(row[i].text));
    widths.push_back(width);
    total += width + (i > 0 ? gap.size() : 0);
  }
  if (const auto terminal = console.width(); terminal && total > *terminal) return upright(console);

  const auto line = [&](auto&& cell) {
    std::string text;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) text += gap;
      text += cell(i);
    }
    return without_trailing_spaces(std::move(text)) + "\n";
  };
  auto text = line([&](std::size_t i) {
    return console.styled(Style::bold, padded(columns_[i].name, widths[i], columns_[i].number));
  });
  for (const auto& row : rows_) {
    text += line([&](std::size_t i) {
      return console.styled(row[i].style, padded(row[i].text, widths[i], columns_[i].number));
    });
  }
  return text;
}

std::string Table::upright(const Console& console) const {
  std::size_t width = 0;
  for (const auto& column : columns_)
    width = std::max(width, columns_of(column.name));
  std::string text;
  for (const auto& row : rows_) {
    if (!text.empty()) text += "\n";
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      text += console.styled(Style::bold, padded(columns_[i].name, width, false));
      text.append(gap).append(console.styled(row[i].style, row[i].text)).append("\n");
    }
  }
  return text;
}

std::string age_text(std::optional<milliseconds> age) {
  if (!age) return "-";
  struct Unit {
    std::int64_t in_seconds;
    char name;
  };
  constexpr std::array units{Unit{86'400, 'd'}, Unit{3600, 'h'}, Unit{60, 'm'}, Unit{1, 's'}};
  const auto seconds = age->count() / 1000;
  if (seconds == 0) return fmt::format("{}ms", std::max<std::int64_t>(age->count(), 0));
  for (std::size_t i = 0; i < units.size(); ++i) {
    const auto& unit = units.at(i);
    if (seconds < unit.in_seconds) continue;
    auto text = fmt::format("{}{}", seconds / unit.in_seconds, unit.name);
    const auto rest = seconds % unit.in_seconds;
    if (i + 1 == units.size() || rest / units.at(i + 1).in_seconds == 0) return text;
    return text + fmt::format(" {}{}", rest / units.at(i + 1).in_seconds, units.at(i + 1).name);
  }
  return "0s";
}

std::string counted(std::int64_t count, std::string_view noun) {
  const bool turns = noun.ends_with('y') && !noun.ends_with("ey");
  const auto plural =
      turns ? fmt::format("{}ies", noun.substr(0, noun.size() - 1)) : fmt::format("{}s", noun);
  return count == 1 ? fmt::format("1 {}", noun) : fmt::format("{} {}", count, plural);
}

}  // namespace postrider::cli
