#pragma once
/// \file
/// Rows of cells in aligned columns. For ASCII.

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

namespace examples {

using TableRow = std::vector<std::string>;

/// Requires: all rows have as many cells as the first.
inline void print_table(std::ostream& out, const std::vector<TableRow>& rows) {
  std::vector<std::size_t> widths(rows.at(0).size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line = "  ";
    for (std::size_t i = 0; i < row.size(); ++i)
      line += " " + row[i] + std::string(widths[i] - row[i].size() + 1, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
}

}  // namespace examples
