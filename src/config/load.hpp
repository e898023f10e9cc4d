#pragma once
/// \file
/// Settings from file, environment and flags, in rising precedence.

#include <optional>
#include <string>
#include <vector>

#include "config/expand.hpp"
#include "config/keys.hpp"
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
  bool worker = false;  ///< the same for the broker of a worker
};

/// Something that cannot be used.
struct Problem {
  std::string origin;   ///< "postrider.toml:12", "POSTRIDER_RELAY_BATCH", "--sleep"
  std::string message;  ///< what, why and what to do; no secret
};

/// A value that was set, by the highest that set it.
struct SetValue {
  const Key* key = nullptr;
  int element = -1;  ///< index of the route or schedule, -1 outside of these
  std::string text;  ///< as the file would have it, `${NAME}` not replaced; may hold a secret when
                     ///< the key `expands`
  std::string origin;  ///< as in `Problem`
};

struct Loaded {
  Settings settings;  ///< usable when there is no problem
  std::vector<Problem> problems;
  std::vector<SetValue>
      values;  ///< in the order in which they were met; what has a default is absent
};

/// The value of a key, if it was set.
[[nodiscard]] const SetValue* find_value(const Loaded& loaded, const Key& key, int element);

/// All problems at once. A store need not be set.
[[nodiscard]] Loaded load(const LoadRequest& request);

}  // namespace postrider::config
