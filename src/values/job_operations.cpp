#include <postrider/job_operations.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "values/job_check.hpp"
#include "values/name_check.hpp"

namespace postrider {
namespace {

constexpr milliseconds most_wait = std::chrono::hours(24 * 365 * 10);

Result<void> check_bounds(std::string_view what, std::int64_t value, std::int64_t least,
                          std::int64_t most) {
  if (value >= least && value <= most) return {};
  return invalid_value(fmt::format("{} is {}. Give {} to {}.", what, value, least, most));
}

Result<void> check_key(std::string_view what, const std::string& key) {
  if (key.empty()) return {};
  return check_name(what, key, JobPolicy::most_key_bytes);
}

/// The route that would have made this job. Keys stand for themselves and are no templates.
Route route_of(const EnqueueRequest& request) {
  Route route;
  route.name = "enqueue";
  route.order = Order::none;
  route.on_failed = OnFailed::skip;
  route.retry_delays = request.retry_delays;
  route.timeout = request.timeout;
  route.job = request.policy;
  route.job->unique_key.clear();
  if (!route.job->serial_key.empty()) route.job->serial_key = "key";
  return route;
}

Result<void> check_policy(const EnqueueRequest& request) {
  const auto faults = validate(route_of(request));
  if (!faults.empty()) return invalid_value(fmt::format("{}", fmt::join(faults, " ")));
  if (auto checked = check_key("serial_key", request.policy.serial_key); !checked) return checked;
  return check_key("unique_key", request.policy.unique_key);
}

}  // namespace

std::string_view to_string(JobAnswer::Kind kind) noexcept {
  switch (kind) {
    case JobAnswer::Kind::changed:
      return "changed";
    case JobAnswer::Kind::requested:
      return "requested";
    case JobAnswer::Kind::refused:
      return "refused";
    case JobAnswer::Kind::unknown:
      return "unknown";
  }
  return "unknown";
}

Result<void> check(const JobFilter& filter) {
  if (auto checked = check_bounds("the limit", static_cast<std::int64_t>(filter.limit), 1,
                                  std::int64_t{most_listed});
      !checked) {
    return checked;
  }
  return check_bounds("the number of rows to examine", static_cast<std::int64_t>(filter.examine), 1,
                      std::int64_t{most_examined});
}

Result<void> check(const DueTime& due) {
  if (due.at) return {};
  if (due.in >= milliseconds::zero() && due.in <= most_wait) return {};
  return invalid_value(
      fmt::format("the due time lies {} ms ahead. Give 0 ms to 10 years.", due.in.count()));
}

Result<void> check(const EnqueueRequest& request) {
  if (auto checked = check(request.event); !checked) return checked;
  if (request.event.available_at) {
    return invalid_value(
        "the event of a job has an available_at. Give the job a due time instead.");
  }
  if (auto checked = check_policy(request); !checked) return checked;
  return check(request.due);
}

Result<void> check_queue_name(std::string_view queue) {
  std::vector<std::string> faults;
  check_queue_name(faults, queue);
  if (faults.empty()) return {};
  return invalid_value(faults.front());
}

Result<void> check(const RateLimit& rate_limit) {
  if (auto checked = check_bounds("the rate limit", rate_limit.limit, 1, RateLimit::most_limit);
      !checked) {
    return checked;
  }
  const auto period = rate_limit.period;
  if (period >= milliseconds(1) && period <= RateLimit::most_period) return {};
  return invalid_value(
      fmt::format("the period of the rate limit is {} ms. Give 1 ms to 30 days.", period.count()));
}

}  // namespace postrider
