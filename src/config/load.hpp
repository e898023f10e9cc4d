#pragma once
/// \file
/// Settings from file, environment and flags, in rising precedence.

#include <optional>
#include <string>
#include <vector>

#include "config/expand.hpp"
#include "config/settings.hpp"

namespace postrider::config {

/// A value from the command line for one key.
struct Override {
  std::string key;     ///< "relay.sleep"
  std::string value;   ///< as in the environment: lists are separated by commas
  std::string origin;  ///< "--sleep"
};

struct LoadRequest {
  std::optional<std::string> path;  ///< of the file; none: there is none
  Environment environment;
  std::vector<Override> overrides;
  /// Whether routes are going to be used. If not, what their `${NAME}` stand for may be missing: a
  /// person who asks for the status need not know the broker's password.
  bool destinations = true;
};

/// Something that cannot be used.
struct Problem {
  std::string origin;   ///< "postrider.toml:12", "POSTRIDER_RELAY_BATCH", "--sleep"
  std::string message;  ///< what, why and what to do; no secret
};

struct Loaded {
  Settings settings;  ///< usable when there is no problem
  std::vector<Problem> problems;
};

/// All problems at once. A store need not be set.
[[nodiscard]] Loaded load(const LoadRequest& request);

}  // namespace postrider::config
