#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include <postrider/relay.hpp>

#include "cli/commands.hpp"
#include "cli/relay_summary.hpp"
#include "cli/session.hpp"
#include "cli/stop_signals.hpp"
#include "observe/log.hpp"

namespace postrider::cli {
namespace {

std::vector<config::Override> overrides_of(const RelayCommandOptions& options) {
  std::vector<config::Override> overrides;
  if (options.sleep)
    overrides.push_back({"relay.sleep", std::to_string(*options.sleep), "--sleep"});
  if (options.max_passes) {
    overrides.push_back({"relay.max_passes", std::to_string(*options.max_passes), "--max-passes"});
  }
  if (!options.log_level.empty()) {
    overrides.push_back({"log.level", options.log_level, "--log-level"});
  }
  if (!options.log_format.empty()) {
    overrides.push_back({"log.format", options.log_format, "--log-format"});
  }
  return overrides;
}

// The summary of a pass says what happened; lines about leases would only surround it.
Severity log_level(const RelayCommandOptions& options, const config::Settings& settings) {
  if (options.loop || !options.log_level.empty()) return settings.log_level;
  return std::max(settings.log_level, Severity::warning);
}

observe::LogOptions log_options(const RelayCommandOptions& options,
                                const config::Settings& settings, const Console& console) {
  const bool text =
      settings.log_format == config::LogFormat::text ||
      (settings.log_format == config::LogFormat::automatic && console.errors_are_terminal());
  return {text ? observe::LineFormat::text : observe::LineFormat::json,
          log_level(options, settings), ""};
}

/// Remembers which routes are paused, for the summary, and hands everything on to the log.
class PauseObserver final : public Observer {
 public:
  explicit PauseObserver(observe::Log& log) : log_(log) {}

  void notice(const Notice& notice) override {
    log_.notice(notice);
    if (notice.kind == NoticeKind::route_paused) paused_[notice.route] = notice.code;
    if (notice.kind == NoticeKind::route_resumed) paused_.erase(notice.route);
    if (notice.kind == NoticeKind::route_stopped) paused_[notice.route] = "blocked";
  }
  [[nodiscard]] const PausedRoutes& paused() const { return paused_; }

 private:
  observe::LogObserver log_;
  PausedRoutes paused_;
};

/// Routes with their publishers, and how they may be shown.
struct Destinations {
  std::vector<RouteBinding> bindings;
  ShownRoutes shown;
  bool standard_output = false;  ///< belongs to the events, so the summary goes elsewhere
  bool jobs = false;             ///< a route makes jobs
};

// A task goes to the queue that its route names, which is where workers look for it.
registry::DestinationOptions options_of(const config::RouteSettings& settings) {
  registry::DestinationOptions options{settings.route.window, settings.amqp, settings.http};
  if (settings.route.job) options.amqp.routing_key = settings.route.job->queue;
  return options;
}

std::optional<ExitCode> open_destinations(const config::Settings& settings, Console& console,
                                          Destinations& destinations) {
  if (settings.routes.empty()) {
    console.complain("configuration",
                     "there is no route. Add a [[routes]] table with name and to, or with name, "
                     "job and queue.");
    return ExitCode::config;
  }
  bool failed = false;
  for (const auto& route_settings : settings.routes) {
    const auto& route = route_settings.route;
    destinations.jobs |= route.job.has_value();
    if (route.job && route.destination.empty()) {  // workers take it from the database
      destinations.bindings.push_back({route, nullptr});
      continue;
    }
    auto found = registry::find_destination(route.destination, options_of(route_settings));
    if (!found) {
      console.complain("route " + route.name, found.error().message);
      failed = true;
      continue;
    }
    destinations.standard_output |= found->standard_output;
    if (!route.job) destinations.shown.emplace_back(route.name, found->shown_url);
    destinations.bindings.push_back({route, found->publisher()});
  }
  if (failed) return ExitCode::config;
  return std::nullopt;
}

/// One run of the relay command, from the open session on.
class RelayRun {
 public:
  RelayRun(const RelayCommandOptions& options, const Session& session, Console& console,
           StopSignals& signals)
      : options_(options),
        session_(session),
        console_(console),
        signals_(signals),
        log_(log_options(options, session.settings(), console), system_clock()),
        observer_(log_),
        random_(system_random()) {}

  ExitCode run() {
    auto store = session_.backend().store();
    if (const auto usable = store->check_schema(session_.deadline()); !usable) {
      return console_.fail("relay", usable.error());
    }
    Destinations destinations;
    if (const auto failed = open_destinations(session_.settings(), console_, destinations)) {
      return *failed;
    }
    shown_ = destinations.shown;
    summary_to_errors_ = destinations.standard_output;
    const auto& backend = session_.backend();
    if ((destinations.jobs || !session_.settings().schedules.empty()) && !backend.keeps_jobs) {
      const auto refused = backend.job_store()->check_schema(session_.deadline());
      return console_.fail("relay", refused.error());
    }
    // Jobs come from elsewhere, too, and every daemon ends those that are lost.
    const bool keeps_jobs = backend.keeps_jobs && (options_.loop || destinations.jobs);
    Relay relay(std::move(store), std::move(destinations.bindings), relay_options(), system_clock(),
                *random_, observer_, options_.loop ? backend.purger() : nullptr,
                keeps_jobs ? backend.job_store() : nullptr, schedules());
    signals_.on_stop([&relay] { relay.request_stop(); });
    const auto code = options_.loop ? loop(relay) : options_.drain ? drain(relay) : pass(relay);
    signals_.forget();
    if (const auto closed = relay.close(); !closed && code == ExitCode::ok) {
      return console_.fail("relay", closed.error());
    }
    return code;
  }

 private:
  [[nodiscard]] RelayOptions relay_options() const {
    auto options = session_.settings().relay;
    options.worker_dead_after = session_.settings().worker.dead_after;
    return options;
  }

  [[nodiscard]] RelaySchedules schedules() const {
    RelaySchedules all;
    for (const auto& each : session_.settings().schedules)
      all.schedules.push_back(each.schedule);
    if (!all.schedules.empty()) all.store = session_.backend().schedule_store();
    return all;
  }

  ExitCode pass(Relay& relay) {
    auto report = relay.run_once();
    if (!report) return console_.fail("relay", report.error());
    if (!report->foreign.empty() && !signals_.wait_for(patience_with(*report))) {
      auto again = relay.run_once();
      if (!again) return console_.fail("relay", again.error());
      report->add(std::move(again).value());
    }
    return finish(*report);
  }

  // One lease time: if the other relay is dead, its partitions are free then.
  milliseconds patience_with(const PassReport& report) const {
    milliseconds longest{0};
    for (const auto& lease : report.foreign)
      longest = std::max(longest, lease.remaining);
    return std::min(longest, session_.settings().relay.lease_time);
  }

  ExitCode drain(Relay& relay) {
    const auto report = relay.drain(session_.settings().max_passes);
    if (!report) return console_.fail("relay", report.error());
    return finish(report->total);
  }

  ExitCode loop(Relay& relay) {
    log_.write(Severity::info, "relay_started",
               {{"name", session_.settings().relay.name},
                {"store", session_.backend().shown_url},
                {"routes", static_cast<std::int64_t>(shown_.size())}});
    const auto report = relay.run();
    if (!report) return console_.fail("relay", report.error());
    log_.write(report->clean ? Severity::info : Severity::warning, "relay_stopped",
               {{"clean", report->clean ? "yes" : "no"},
                {"left_in_flight", static_cast<std::int64_t>(report->left_in_flight)}});
    return report->clean ? ExitCode::ok : ExitCode::temporary;
  }

  ExitCode finish(const PassReport& report) {
    const auto text = options_.json ? summary_json(report, shown_, observer_.paused())
                                    : summary_text(report, shown_, observer_.paused());
    if (summary_to_errors_) {
      console_.note(text);
    } else {
      console_.print(text);
    }
    const bool later = !report.foreign.empty() || destination_unavailable(report);
    return later ? ExitCode::temporary : ExitCode::ok;
  }

  const RelayCommandOptions& options_;
  const Session& session_;
  Console& console_;
  StopSignals& signals_;
  observe::Log log_;
  PauseObserver observer_;
  std::unique_ptr<Random> random_;
  ShownRoutes shown_;
  bool summary_to_errors_ = false;
};

}  // namespace

ExitCode run_relay(const Options& options, Console& console) {
  StopSignals signals;
  Session session(options.database);
  if (const auto failed =
          session.open(Needs::store_and_routes, console, overrides_of(options.relay))) {
    return *failed;
  }
  return RelayRun(options.relay, session, console, signals).run();
}

}  // namespace postrider::cli
