#include "bench/figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "bench/goals.hpp"

namespace postrider::bench {
namespace {

std::vector<double> limits_of(const Figure& figure) {
  std::vector<double> values;
  for (const auto& pair : figure.pairs)
    values.push_back(pair.limit);
  return values;
}

std::vector<double> products_of(const Figure& figure) {
  std::vector<double> values;
  for (const auto& pair : figure.pairs)
    values.push_back(pair.product);
  return values;
}

bool has_limit(const Figure& figure) {
  return std::all_of(figure.pairs.begin(), figure.pairs.end(),
                     [](const Pair& pair) { return pair.limit > 0; });
}

std::string padded(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value >= 1000 ? "%.0f" : "%.3f", value);
  return text;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<double> ratios(const Figure& figure) {
  std::vector<double> values;
  for (const auto& pair : figure.pairs) {
    if (pair.limit > 0) values.push_back(pair.product / pair.limit);
  }
  return values;
}

double spread(const Figure& figure) {
  const auto values = ratios(figure);
  if (values.empty()) return 0;
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  return (*greatest - *least) / median(values);
}

nlohmann::ordered_json to_json(const Figure& figure) {
  nlohmann::ordered_json json;
  json["name"] = figure.name;
  json["unit"] = figure.unit;
  json["product"] = median(products_of(figure));
  if (has_limit(figure)) {
    json["limit"] = median(limits_of(figure));
    json["ratio"] = median(ratios(figure));
    json["spread"] = spread(figure);
  }
  json["pairs"] = nlohmann::ordered_json::array();
  for (const auto& pair : figure.pairs)
    json["pairs"].push_back({pair.limit, pair.product});
  return json;
}

std::string table_heading() {
  return "figure                         limit      product    ratio   spread  goal    unit\n";
}

std::string table_line(const nlohmann::ordered_json& figure) {
  const auto name = figure.at("name").get<std::string>();
  const bool has_ratio = figure.contains("ratio");
  const auto goal = find_goal(name);
  std::string line = name + std::string(name.size() < 24 ? 24 - name.size() : 1, ' ');
  line += padded(has_ratio ? shown(figure["limit"]) : "-", 12);
  line += padded(shown(figure.at("product")), 13);
  const bool refused = has_ratio && figure["spread"].get<double>() > most_spread;
  line += padded(refused ? "refused" : has_ratio ? shown(figure["ratio"]) : "-", 9);
  line += padded(has_ratio ? shown(figure["spread"]) : "-", 9);
  line += padded(goal ? shown(goal->bound) : "-", 7);
  return line + "   " + figure.at("unit").get<std::string>() + "\n";
}

}  // namespace postrider::bench
