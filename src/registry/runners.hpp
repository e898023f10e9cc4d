#pragma once
/// \file
/// From what a worker is told to what runs its jobs.
///
/// Thread safety: functions without state.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <postrider/result.hpp>
#include <postrider/runner/exec.hpp>
#include <postrider/worker.hpp>

namespace postrider::registry {

/// Either a command or a URL.
struct RunnerChoice {
  std::vector<std::string> exec;
  ExecOutput exec_output = ExecOutput::discard;
  std::map<std::string, std::string> exec_environment;  ///< added to that of the command
  std::string http;
  std::size_t slots = 10;
};

/// "exec" or "http".
[[nodiscard]] std::string_view runner_name(const RunnerChoice& choice) noexcept;

/// Errors: `config_invalid` for what cannot be run, `unsupported` when this build lacks it.
[[nodiscard]] Result<JobRunnerFactory> find_runner(const RunnerChoice& choice);

}  // namespace postrider::registry
