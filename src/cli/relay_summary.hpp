#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <postrider/relay_values.hpp>

#include "cli/console.hpp"

namespace postrider::cli {

/// Name and shown URL of each route, in the order of the configuration.
using ShownRoutes = std::vector<std::pair<std::string, std::string>>;

/// Routes that are paused at the end, with the reason's code; "blocked": by a person, by a dead
/// letter under on_failed = "stop", or, for a route with order = "global", by another relay.
using PausedRoutes = std::map<std::string, std::string>;

/// What one pass or a drain has done, for people: what was delivered where, what went wrong, what
/// waits and why.
[[nodiscard]] std::string summary_text(const PassReport& report, const ShownRoutes& routes,
                                       const PausedRoutes& paused);
/// The same for scripts, one JSON document.
[[nodiscard]] std::string summary_json(const PassReport& report, const ShownRoutes& routes,
                                       const PausedRoutes& paused);

/// Whether somebody should try again later: a destination is down, or events wait for one.
[[nodiscard]] bool destination_unavailable(const PassReport& report);

}  // namespace postrider::cli
