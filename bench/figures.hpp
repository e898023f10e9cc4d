#pragma once
/// \file
/// Measurements: the limit and the product side by side, pair by pair, and what is said of them.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace postrider::bench {

/// Two measurements that were made one after the other.
struct Pair {
  double limit = 0;
  double product = 0;
};

/// What was measured for one goal. Without a limit (`unit` of an absolute value, such as memory)
/// only `product` of each pair counts.
struct Figure {
  std::string name;  ///< that of its goal, if it has one
  std::string unit;
  std::vector<Pair> pairs;
};

[[nodiscard]] double median(std::vector<double> values);

/// product / limit of each pair.
[[nodiscard]] std::vector<double> ratios(const Figure& figure);

/// (greatest - least) / median of the ratios: how far pairs disagree. Zero without a limit.
[[nodiscard]] double spread(const Figure& figure);

/// Ratios of pairs that disagree by more than this tell of the machine, and are not reported.
inline constexpr double most_spread = 0.25;

/// One member per figure: medians, ratio, spread, all pairs.
[[nodiscard]] nlohmann::ordered_json to_json(const Figure& figure);

/// The heading of the table, and the line of a figure as `to_json` wrote it.
[[nodiscard]] std::string table_heading();
[[nodiscard]] std::string table_line(const nlohmann::ordered_json& figure);

}  // namespace postrider::bench
