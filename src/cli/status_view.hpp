#pragma once
#include <string>
#include <vector>

#include <postrider/job_operations.hpp>
#include <postrider/operations.hpp>

#include "cli/console.hpp"
#include "cli/schedule_view.hpp"

namespace postrider::cli {

/// The status for people. `routes` are those of the configuration: one without rows shows zeros.
[[nodiscard]] std::string status_text(const Status& status, const JobStatus& jobs,
                                      const std::vector<std::string>& routes,
                                      const std::vector<ShownSchedule>& schedules,
                                      const Console& console);
/// The same for scripts, one JSON document. Ages in ms; null when there is nothing to be old.
[[nodiscard]] std::string status_json(const Status& status, const JobStatus& jobs,
                                      const std::vector<std::string>& routes,
                                      const std::vector<ShownSchedule>& schedules);

/// The sum over all routes, under the name "total".
[[nodiscard]] DeliveryCounts total_of(const Status& status);

}  // namespace postrider::cli
