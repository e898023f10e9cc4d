#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>

#include "cli/console.hpp"

namespace postrider::cli {

/// A table for people. Cells are shown with control characters and invalid UTF-8 replaced, as an
/// event's type may hold what a terminal would obey.
class Table {
 public:
  struct Column {
    std::string name;
    bool number = false;  ///< aligned to the right
  };
  struct Cell {
    std::string text;
    Style style = Style::plain;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<Cell> row);
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  /// Lines with two spaces between columns; where they do not fit the terminal, one line per cell.
  [[nodiscard]] std::string text(const Console& console) const;

 private:
  [[nodiscard]] std::string upright(const Console& console) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// Number of columns that a terminal needs for `text`, taking one for each character.
[[nodiscard]] std::size_t columns_of(std::string_view text);

/// `text` without what could steer a terminal.
[[nodiscard]] std::string harmless(std::string_view text);

/// "-", "850ms", "12s", "3m 20s", "5h 2m", "3d 4h".
[[nodiscard]] std::string age_text(std::optional<milliseconds> age);

/// "1 event", "2 events".
[[nodiscard]] std::string counted(std::int64_t count, std::string_view noun);

}  // namespace postrider::cli
