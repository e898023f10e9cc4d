#include "registry/runners.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <postrider/runner/http.hpp>

// Set by CMake for what this build holds.
#ifndef POSTRIDER_REGISTRY_EXEC
#define POSTRIDER_REGISTRY_EXEC 0
#endif
#ifndef POSTRIDER_REGISTRY_HTTP
#define POSTRIDER_REGISTRY_HTTP 0
#endif

namespace postrider::registry {
namespace {

[[maybe_unused]] Error cannot_run(const std::vector<std::string>& faults) {
  return {ErrorCode::config_invalid, Disposition::stop, fmt::format("{}", fmt::join(faults, " ")),
          "registry", ""};
}

[[maybe_unused]] Error not_built(std::string_view option, std::string_view other) {
  return {ErrorCode::unsupported, Disposition::stop,
          fmt::format("this postrider was built without {}. Give {} instead, or install a build "
                      "that has it.",
                      option, other),
          "registry", ""};
}

Result<JobRunnerFactory> exec_runner([[maybe_unused]] const RunnerChoice& choice) {
#if POSTRIDER_REGISTRY_EXEC
  ExecOptions options;
  options.command = choice.exec;
  options.slots = choice.slots;
  options.environment = choice.exec_environment;
  options.output = choice.exec_output;
  if (const auto faults = validate(options); !faults.empty()) return cannot_run(faults);
  return JobRunnerFactory([options](AttemptDesk&) -> Result<std::unique_ptr<JobRunner>> {
    return make_exec_runner(options);
  });
#else
  return not_built("--exec", "--http URL");
#endif
}

Result<JobRunnerFactory> http_runner([[maybe_unused]] const RunnerChoice& choice) {
#if POSTRIDER_REGISTRY_HTTP
  HttpRunnerOptions options;
  options.url = choice.http;
  options.slots = choice.slots;
  if (const auto faults = validate(options); !faults.empty()) return cannot_run(faults);
  return JobRunnerFactory([options](AttemptDesk&) -> Result<std::unique_ptr<JobRunner>> {
    return make_http_runner(options);
  });
#else
  return not_built("--http", "--exec CMD");
#endif
}

}  // namespace

std::string_view runner_name(const RunnerChoice& choice) noexcept {
  return choice.http.empty() ? "exec" : "http";
}

Result<JobRunnerFactory> find_runner(const RunnerChoice& choice) {
  return choice.http.empty() ? exec_runner(choice) : http_runner(choice);
}

}  // namespace postrider::registry
