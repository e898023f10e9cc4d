#pragma once
/// \file
/// What the product has to reach, and the check of a result file against it.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace postrider::bench {

struct Goal {
  enum class Kind { ratio_at_least, value_below };
  std::string_view name;
  Kind kind;
  double bound;
  std::string_view meaning;
};

[[nodiscard]] const std::vector<Goal>& goals();
[[nodiscard]] std::optional<Goal> find_goal(std::string_view name);

/// One line per goal that `results` does not show to be met: missed, refused, or not measured.
[[nodiscard]] std::vector<std::string> missed_goals(const nlohmann::ordered_json& results);

}  // namespace postrider::bench
