#pragma once
/// \file
/// Everything that postrider.toml can say, as values. The keys are listed in keys.cpp.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/consumer/amqp.hpp>
#include <postrider/observer.hpp>
#include <postrider/publisher/amqp.hpp>
#include <postrider/publisher/http.hpp>
#include <postrider/relay_values.hpp>
#include <postrider/route.hpp>
#include <postrider/schedule.hpp>
#include <postrider/schema.hpp>
#include <postrider/worker_values.hpp>

namespace postrider::config {

enum class LogFormat : std::uint8_t {
  automatic,  ///< text on a terminal, JSON elsewhere
  json,
  text,
};

[[nodiscard]] std::string_view to_string(LogFormat format) noexcept;
[[nodiscard]] std::optional<LogFormat> parse_log_format(std::string_view text) noexcept;
[[nodiscard]] std::optional<Severity> parse_severity(std::string_view text) noexcept;

struct RouteSettings {
  Route route;       ///< `destination` may hold a secret; show it through `registry::redacted` only
  JobPolicy job;     ///< becomes the route's own when it names a job
  AmqpOptions amqp;  ///< for amqp:// and amqps://; without `url` and `window`
  HttpOptions http;  ///< for http:// and https://; without `url` and `window`
};

struct ScheduleSettings {
  Schedule schedule;
  std::string aggregate;  ///< TYPE/ID, as `emit` reads it; `schedule` has it taken apart
};

struct Settings {
  std::string store;  ///< URL; may hold a secret
  SchemaNames names;
  RelayOptions relay;
  std::optional<std::size_t> max_passes;
  WorkerOptions worker;                    ///< `queues` are those of `worker_queues`
  std::vector<std::string> worker_queues;  ///< "mail", or "mail:3" with a weight
  AmqpSourceOptions worker_source;         ///< its `url` may hold a secret; empty: there is none
  std::vector<RouteSettings> routes;
  std::vector<ScheduleSettings> schedules;
  LogFormat log_format = LogFormat::automatic;
  Severity log_level = Severity::info;
};

}  // namespace postrider::config
