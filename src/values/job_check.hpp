#pragma once
/// \file
/// What jobs and queues may be called, and what makes a policy of jobs usable.

#include <string>
#include <string_view>
#include <vector>

#include <postrider/route.hpp>

namespace postrider {

/// Whether `name` is 1 to 64 of a-z, 0-9, '_', '-', '.': a route or a queue.
[[nodiscard]] bool is_plain_name(std::string_view name) noexcept;

void check_job_name(std::vector<std::string>& faults, std::string_view job);
void check_queue_name(std::vector<std::string>& faults, std::string_view queue);

/// Requires: `route.job` is set. Says nothing of what all routes have.
void check_job_route(std::vector<std::string>& faults, const Route& route);

}  // namespace postrider
