#include "config/suggestion.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace postrider::config {
namespace {

// Levenshtein distance with one row of the table.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto replaced = diagonal + (a[i] == b[j] ? 0U : 1U);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& known) {
  // Two letters (one swap of neighbours) or a third of the word may be wrong; more, and the
  // suggestion is noise.
  std::size_t least = std::max<std::size_t>(typed.size() / 3, 2) + 1;
  std::optional<std::string> best;
  for (const auto& word : known) {
    const auto away = distance(typed, word);
    if (away >= least || away >= word.size()) continue;
    least = away;
    best = word;
  }
  return best;
}

}  // namespace postrider::config
