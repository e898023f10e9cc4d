#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <postrider/worker.hpp>

#include "cli/commands.hpp"
#include "cli/session.hpp"
#include "cli/stop_signals.hpp"
#include "observe/log.hpp"
#include "registry/registry.hpp"
#include "registry/runners.hpp"

namespace postrider::cli {
namespace {

std::vector<config::Override> worker_overrides(const WorkerCommandOptions& options) {
  std::vector<config::Override> overrides;
  const auto add = [&](const char* key, const std::string& value, const char* option) {
    if (!value.empty()) overrides.push_back({key, value, option});
  };
  add("worker.queues", fmt::format("{}", fmt::join(options.queues, ",")), "--queue");
  add("worker.from", options.from, "--from");
  add("worker.from_queue", options.from_queue, "--from-queue");
  add("worker.name", options.name, "--name");
  add("log.level", options.log_level, "--log-level");
  add("log.format", options.log_format, "--log-format");
  if (options.concurrency) {
    add("worker.concurrency", std::to_string(*options.concurrency), "--concurrency");
  }
  return overrides;
}

observe::LogOptions worker_log_options(const config::Settings& settings, const Console& console) {
  const bool text =
      settings.log_format == config::LogFormat::text ||
      (settings.log_format == config::LogFormat::automatic && console.errors_are_terminal());
  return {text ? observe::LineFormat::text : observe::LineFormat::json, settings.log_level, ""};
}

/// `postrider attempt` in a handler finds the database by the same file as its worker.
std::map<std::string, std::string> handler_environment(const Session& session) {
  if (!session.path()) return {};
  return {{"POSTRIDER_CONFIG", std::filesystem::absolute(*session.path()).string()}};
}

std::vector<std::string> queue_names(const WorkerOptions& options) {
  std::vector<std::string> names;
  for (const auto& share : options.queues)
    names.push_back(share.queue);
  return names;
}

/// One run of the worker command, from the open session on.
class WorkerRun {
 public:
  WorkerRun(const WorkerCommandOptions& command, const Session& session, Console& console,
            StopSignals& signals)
      : command_(command),
        session_(session),
        console_(console),
        signals_(signals),
        log_(worker_log_options(session.settings(), console), system_clock()),
        observer_(log_),
        random_(system_random()) {}

  ExitCode run() {
    const auto& options = session_.settings().worker;
    const auto& from = session_.settings().worker_source;
    const bool has_source = !from.url.empty() || !from.queue.empty();
    if (const auto faults = validate(options, has_source); !faults.empty()) {
      for (const auto& fault : faults)
        console_.complain("worker", fault);
      return ExitCode::config;
    }
    if (has_source) {
      auto source = registry::find_source(from.url, {from});
      if (!source) return console_.fail("worker", source.error());
      source_ = std::move(source).value();
    }
    if (const auto usable = session_.backend().job_store()->check_schema(session_.deadline());
        !usable) {
      return console_.fail("worker", usable.error());
    }
    const auto choice = runner_choice();
    const auto runner = registry::find_runner(choice);
    if (!runner) return console_.fail("worker", runner.error());
    runner_ = registry::runner_name(choice);
    return work(*runner, options);
  }

 private:
  [[nodiscard]] registry::RunnerChoice runner_choice() const {
    registry::RunnerChoice choice;
    choice.exec = command_.exec;
    choice.exec_environment = handler_environment(session_);
    for (const auto output : {ExecOutput::discard, ExecOutput::tail, ExecOutput::inherit}) {
      if (to_string(output) == command_.exec_output) choice.exec_output = output;
    }
    choice.http = command_.http;
    choice.slots = session_.settings().worker.concurrency;
    return choice;
  }

  ExitCode work(const JobRunnerFactory& runner, const WorkerOptions& options) {
    Worker worker(session_.backend().job_store, runner, options, system_clock(), *random_,
                  observer_, source_.source);
    const auto stop = [&worker] { worker.request_stop(); };
    signals_.on_stop(stop, stop);
    say_started(options);
    const auto report = worker.run();
    signals_.forget();
    worker.close();
    if (!report) return console_.fail("worker", report.error());
    say_stopped(*report);
    return report->clean() ? ExitCode::ok : ExitCode::temporary;
  }

  void say_started(const WorkerOptions& options) {
    observe::Fields fields = {{"name", options.name},
                              {"store", session_.backend().shown_url},
                              {"queues", fmt::format("{}", fmt::join(queue_names(options), ","))},
                              {"concurrency", static_cast<std::int64_t>(options.concurrency)},
                              {"runner", runner_}};
    if (!source_.shown_url.empty()) fields.emplace_back("from", source_.shown_url);
    log_.write(Severity::info, "worker_started", fields);
    for (const auto& queue : queue_names(options)) {
      if (has_route(queue)) continue;
      log_.write(Severity::warning, "queue_without_route",
                 {{"queue", queue},
                  {"detail",
                   "no job route of this configuration leads to it; only jobs that are "
                   "enqueued by hand or by others will come"}});
    }
  }

  /// Without any job route in the configuration nothing is known.
  [[nodiscard]] bool has_route(const std::string& queue) const {
    bool any = false;
    for (const auto& each : session_.settings().routes) {
      if (!each.route.job) continue;
      if (each.route.job->queue == queue) return true;
      any = true;
    }
    return !any;
  }

  void say_stopped(const WorkerReport& report) {
    const auto count = [](std::size_t value) { return static_cast<std::int64_t>(value); };
    log_.write(report.clean() ? Severity::info : Severity::warning, "worker_stopped",
               {{"clean", report.clean() ? "yes" : "no"},
                {"completed", count(report.completed)},
                {"retried", count(report.retried)},
                {"failed", count(report.failed)},
                {"deaths", count(report.deaths)},
                {"snoozed", count(report.snoozed)},
                {"cancelled", count(report.cancelled)},
                {"stale", count(report.stale)},
                {"released", count(report.released)},
                {"unrecorded", count(report.unrecorded)}});
  }

  const WorkerCommandOptions& command_;
  const Session& session_;
  Console& console_;
  StopSignals& signals_;
  observe::Log log_;
  observe::LogObserver observer_;
  std::unique_ptr<Random> random_;
  std::string runner_;
  registry::Source source_;  // empty without `from`
};

}  // namespace

ExitCode run_worker(const Options& options, Console& console) {
  StopSignals signals;
  Session session(options.database);
  if (const auto failed =
          session.open(Needs::store_and_worker, console, worker_overrides(options.worker))) {
    return *failed;
  }
  return WorkerRun(options.worker, session, console, signals).run();
}

}  // namespace postrider::cli
