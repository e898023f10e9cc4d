#include "values/job_check.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "values/event_template.hpp"
#include "values/job_hooks.hpp"
#include "values/name_check.hpp"
#include "values/range_check.hpp"

namespace postrider {
namespace {

constexpr std::size_t most_name_bytes = 64;
constexpr milliseconds least_job_timeout{100};

bool is_plain_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

bool is_job_character(char c) {
  return is_plain_character(c) || (c >= 'A' && c <= 'Z');
}

void check_template(std::vector<std::string>& faults, std::string_view key,
                    const std::string& text) {
  if (text.size() > JobPolicy::most_key_bytes) {
    faults.push_back(fmt::format("{} has {} bytes. Give at most {}.", key, text.size(),
                                 JobPolicy::most_key_bytes));
    return;
  }
  if (const auto parsed = EventTemplate::parse(key, text); !parsed) {
    faults.push_back(parsed.error().message);
  }
}

void check_ordering(std::vector<std::string>& faults, const Route& route) {
  if (route.order != Order::none) {
    faults.push_back(fmt::format(
        "order is {} on a job route. Set it to none; give jobs an order by a serial_key.",
        to_string(route.order)));
  }
  if (route.on_failed != OnFailed::skip) {
    faults.push_back(fmt::format(
        "on_failed is {} on a job route. Set it to skip: a failed job holds up no other.",
        to_string(route.on_failed)));
  }
}

void check_timeouts(std::vector<std::string>& faults, const Route& route) {
  const auto timeout = route.timeout;
  const auto limit = route.job->timeout_limit;
  const auto before = faults.size();
  check_duration(faults, "timeout", timeout, least_job_timeout, JobPolicy::most_timeout);
  check_duration(faults, "timeout_limit", limit, least_job_timeout, JobPolicy::most_timeout);
  if (faults.size() > before || limit >= timeout) return;
  faults.push_back(fmt::format(
      "timeout_limit is {} ms and timeout is {} ms. Give a timeout_limit of at least the timeout.",
      limit.count(), timeout.count()));
}

void check_hooks(std::vector<std::string>& faults, const JobHooks& hooks) {
  for (const auto& [name, member] : hook_members) {
    const auto& type = hooks.*member;
    if (type.empty()) continue;
    if (type.find('*') != std::string::npos) {
      faults.push_back(fmt::format(
          "{} is {}, a pattern. Give the one type of the event to write, such as shipping.failed.",
          name, type));
    } else if (const auto checked = check_name(name, type, EventLimits{}.name_bytes); !checked) {
      faults.push_back(checked.error().message);
    }
  }
}

}  // namespace

bool is_plain_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= most_name_bytes &&
         std::all_of(name.begin(), name.end(), is_plain_character);
}

void check_job_name(std::vector<std::string>& faults, std::string_view job) {
  if (!job.empty() && job.size() <= most_name_bytes &&
      std::all_of(job.begin(), job.end(), is_job_character)) {
    return;
  }
  faults.push_back(fmt::format(
      "the job '{}' cannot be used. Give 1 to {} characters of a-z, A-Z, 0-9, '_', '-' and '.'.",
      job, most_name_bytes));
}

void check_queue_name(std::vector<std::string>& faults, std::string_view queue) {
  if (is_plain_name(queue)) return;
  faults.push_back(fmt::format(
      "the queue '{}' cannot be used. Give 1 to {} characters of a-z, 0-9, '_', '-' and '.'.",
      queue, most_name_bytes));
}

void check_job_route(std::vector<std::string>& faults, const Route& route) {
  const auto& policy = *route.job;
  check_job_name(faults, policy.job);
  check_queue_name(faults, policy.queue);
  check_ordering(faults, route);
  check_timeouts(faults, route);
  check_number(faults, "max_deaths", policy.max_deaths, 0, JobPolicy::most_max_deaths);
  check_number(faults, "priority", policy.priority, JobPolicy::least_priority,
               JobPolicy::most_priority);
  check_template(faults, "serial_key", policy.serial_key);
  check_number(faults, "serial_limit", policy.serial_limit, 1, JobPolicy::most_serial_limit);
  if (policy.serial_key.empty() && policy.serial_limit > 1) {
    faults.push_back(fmt::format(
        "serial_limit is {} without a serial_key. Give a serial_key such as {{aggregate_id}}.",
        policy.serial_limit));
  }
  check_template(faults, "unique_key", policy.unique_key);
  check_hooks(faults, policy.hooks);
}

}  // namespace postrider
