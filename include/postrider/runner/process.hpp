#pragma once
/// \file
/// Runs jobs of C++ handlers in child processes: a crash of one ends that attempt and nothing else,
/// and one that hangs is killed.
///
///     worker ── zygote ──┬── child: one attempt at a time
///        └───────────────┼── child      …
///
/// The zygote is forked before the first thread and only forks: a fork of a process with threads
/// may hang. Each child has a socket to the worker, where tasks go out, and questions of attempts
/// and outcomes come back. Whoever dies takes along what is below it.

#include <cstddef>
#include <memory>
#include <string>

#include <postrider/attempt.hpp>
#include <postrider/handlers.hpp>
#include <postrider/job_runner.hpp>
#include <postrider/result.hpp>

namespace postrider {

inline constexpr std::size_t most_runner_processes = 1000;

struct ProcessOptions {
  /// Control group whose out-of-memory kills count; empty: the one of this process.
  std::string cgroup_folder;
};

/// Handlers and services live in the children as they are at this call: connections that a service
/// has open would be shared with all of them, so let services connect at their first use. A child
/// runs one attempt after the other and keeps what a service has made of itself, until it dies.
/// SIGTERM and SIGINT are ignored there; attempts are asked to stop by their token.
///
/// Ownership: keeps a copy of the handlers; borrows the desk, which must outlive the runner.
/// Requires: 1 to `most_runner_processes` slots.
/// Errors: `config_invalid` with every fault of the handlers, and when none is bound;
///   `unsupported` when this process has threads already; `unavailable` when it cannot be forked.
[[nodiscard]] Result<std::unique_ptr<JobRunner>> make_process_runner(
    Handlers handlers, std::size_t slots, AttemptDesk& desk, const ProcessOptions& options = {});

}  // namespace postrider
