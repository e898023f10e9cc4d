#pragma once
/// \file
/// Jobs, queues and workers as people and scripts see them. Never a payload or a checkpoint.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <postrider/job_operations.hpp>

#include "cli/console.hpp"

namespace postrider::cli {

[[nodiscard]] std::string jobs_text(const std::vector<JobDetail>& jobs, const Console& console);
[[nodiscard]] std::string job_text(const JobDetail& job, const Console& console);
[[nodiscard]] nlohmann::ordered_json job_json(const JobDetail& job);
/// With the history of its failures.
[[nodiscard]] nlohmann::ordered_json shown_job_json(const JobDetail& job);

/// By queue and job, with a line per paused or limited queue; empty when there is neither.
[[nodiscard]] std::string job_status_text(const JobStatus& status, const Console& console);
/// {"jobs": […], "queues": […]}
[[nodiscard]] nlohmann::ordered_json job_status_json(const JobStatus& status);

/// One line per queue that has jobs or of which something is said.
[[nodiscard]] std::string queues_text(const JobStatus& status, const Console& console);
[[nodiscard]] nlohmann::ordered_json queues_json(const JobStatus& status);

[[nodiscard]] std::string workers_text(const std::vector<ListedWorker>& workers,
                                       const Console& console);
[[nodiscard]] nlohmann::ordered_json workers_json(const std::vector<ListedWorker>& workers);

/// "100/1m", as `queue limit` reads it.
[[nodiscard]] std::string rate_text(const RateLimit& rate_limit);

}  // namespace postrider::cli
