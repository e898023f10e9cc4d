#include <postrider/route.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "values/job_check.hpp"
#include "values/parse_word.hpp"

namespace postrider {
namespace {

constexpr milliseconds least_retry_delay{1};
constexpr milliseconds most_retry_delay = std::chrono::hours(24 * 30);
constexpr milliseconds least_timeout{100};
constexpr milliseconds most_timeout = std::chrono::hours(1);

bool is_prefix_pattern(std::string_view pattern) {
  return pattern.ends_with(".*");
}

void check_route_name(std::vector<std::string>& faults, const std::string& name) {
  if (is_plain_name(name)) return;
  faults.push_back(fmt::format(
      "the name '{}' cannot be used. Give 1 to 64 characters of a-z, 0-9, '_', '-' and '.'.",
      name));
}

bool covers(std::string_view pattern, std::string_view type) noexcept {
  if (pattern == "*") return true;
  if (!is_prefix_pattern(pattern)) return pattern == type;
  pattern.remove_suffix(1);  // "order.*" keeps its dot: "order." begins "order.placed"
  return type.size() > pattern.size() && type.starts_with(pattern);
}

// Read as a type, "order.*" is covered by whatever covers all that it covers itself.
bool overlap(std::string_view one, std::string_view other) noexcept {
  return covers(one, other) || covers(other, one);
}

void check_pattern(std::vector<std::string>& faults, std::string_view pattern) {
  const auto star = pattern.find('*');
  const bool sound = pattern == "*" || (is_prefix_pattern(pattern) && pattern.size() > 2 &&
                                        star == pattern.size() - 1);
  if (pattern.empty() || (star != std::string_view::npos && !sound)) {
    faults.push_back(
        fmt::format("the event pattern '{}' cannot be used. Give a type such as "
                    "order.placed, a prefix such as order.*, or *.",
                    pattern));
  }
}

void check_events(std::vector<std::string>& faults, const std::vector<std::string>& events) {
  if (events.empty()) faults.emplace_back("events is empty. Give at least one pattern, or \"*\".");
  for (const auto& pattern : events)
    check_pattern(faults, pattern);
}

void check_retry_delays(std::vector<std::string>& faults, const std::vector<milliseconds>& delays) {
  if (delays.size() > Route::most_retry_delays) {
    faults.push_back(fmt::format("retry_delays has {} entries. Give at most {}.", delays.size(),
                                 Route::most_retry_delays));
  }
  for (const auto delay : delays) {
    if (delay < least_retry_delay || delay > most_retry_delay) {
      faults.push_back(fmt::format("retry_delays holds {} ms. Give {} ms to 30 days.",
                                   delay.count(), least_retry_delay.count()));
    }
  }
}

void check_publish_route(std::vector<std::string>& faults, const Route& route) {
  if (route.destination.empty()) {
    faults.emplace_back("the destination is empty. Give a URL such as file:events.jsonl.");
  }
  if (route.timeout < least_timeout || route.timeout > most_timeout) {
    faults.push_back(fmt::format("timeout is {} ms. Give {} ms to 1 h.", route.timeout.count(),
                                 least_timeout.count()));
  }
  if (route.window < 1 || route.window > Route::most_window) {
    faults.push_back(fmt::format("window is {}. Give 1 to {}.", route.window, Route::most_window));
  }
}

}  // namespace

std::string_view to_string(Order order) noexcept {
  switch (order) {
    case Order::aggregate:
      return "aggregate";
    case Order::global:
      return "global";
    case Order::none:
      return "none";
  }
  return "aggregate";
}

std::string_view to_string(OnFailed on_failed) noexcept {
  switch (on_failed) {
    case OnFailed::halt:
      return "halt";
    case OnFailed::skip:
      return "skip";
    case OnFailed::stop:
      return "stop";
  }
  return "halt";
}

std::string_view to_string(Record record) noexcept {
  return record == Record::open ? "open" : "all";
}

std::optional<Order> parse_order(std::string_view text) noexcept {
  return parse_word(text, std::array{Order::aggregate, Order::global, Order::none});
}

std::optional<OnFailed> parse_on_failed(std::string_view text) noexcept {
  return parse_word(text, std::array{OnFailed::halt, OnFailed::skip, OnFailed::stop});
}

std::optional<Record> parse_record(std::string_view text) noexcept {
  return parse_word(text, std::array{Record::open, Record::all});
}

std::vector<std::string> validate(const Route& route) {
  std::vector<std::string> faults;
  check_route_name(faults, route.name);
  check_events(faults, route.events);
  check_retry_delays(faults, route.retry_delays);
  if (route.job) {
    check_job_route(faults, route);
  } else {
    check_publish_route(faults, route);
  }
  return faults;
}

Route job_route(std::string name, std::vector<std::string> events, JobPolicy job) {
  Route route;
  route.name = std::move(name);
  route.events = std::move(events);
  route.order = Order::none;
  route.on_failed = OnFailed::skip;
  route.timeout = JobPolicy::default_timeout;
  route.job = std::move(job);
  return route;
}

bool conflict(const Route& one, const Route& other) noexcept {
  if (one.name == other.name) return true;
  if (!one.job || !other.job) return false;
  if (one.job->job != other.job->job || one.job->queue != other.job->queue) return false;
  return std::any_of(one.events.begin(), one.events.end(), [&](std::string_view pattern) {
    return std::any_of(other.events.begin(), other.events.end(),
                       [&](std::string_view against) { return overlap(pattern, against); });
  });
}

bool matches(const Route& route, std::string_view type) noexcept {
  return std::any_of(route.events.begin(), route.events.end(),
                     [&](std::string_view pattern) { return covers(pattern, type); });
}

std::optional<std::string> ordering_key(Order order, const Event& event) {
  switch (order) {
    case Order::none:
      return std::nullopt;
    case Order::global:
      return std::string(global_ordering_key);
    case Order::aggregate:
      if (!event.aggregate) return std::nullopt;
      return aggregate_key(*event.aggregate);
  }
  return std::nullopt;
}

}  // namespace postrider
