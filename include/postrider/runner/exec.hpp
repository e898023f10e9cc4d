#pragma once
/// \file
/// Jobs as commands in any language: one child process per attempt.
///
/// The event comes on standard input as one line of JSON, the ids in the environment, and the exit
/// code says how it went: 0 done, 75 retry, any other one fail. Death by a signal is a death of the
/// worker. Source of the contract: docs/operate/jobs-exec-http.md.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/job_runner.hpp>

namespace postrider {

/// What becomes of what a command writes to its standard output and standard error.
enum class ExecOutput : std::uint8_t {
  discard,  ///< it is read and counted; it may hold anybody's data
  tail,     ///< the last of it goes to our standard error when an attempt did not end as done
  inherit,  ///< both are our standard error; one that is not read holds up the command
};

[[nodiscard]] std::string_view to_string(ExecOutput output) noexcept;
[[nodiscard]] std::optional<ExecOutput> parse_exec_output(std::string_view text) noexcept;

struct ExecOptions {
  static constexpr std::size_t most_slots = 1000;
  static constexpr std::size_t most_tail_bytes = 1U << 20U;

  /// The program, found by PATH when it has no slash, and its arguments. No shell looks at them.
  std::vector<std::string> command;
  /// Attempts at once, 1 to `most_slots`. Each takes 5 descriptors.
  std::size_t slots = 10;
  /// Added to the worker's own environment, of which no POSTRIDER_… is handed on: such variables
  /// may hold the database's password.
  std::map<std::string, std::string> environment;
  ExecOutput output = ExecOutput::discard;
  std::size_t tail_bytes = 8U << 10U;  ///< with `ExecOutput::tail`; 1 to `most_tail_bytes`

  // Limits of each command, 0: those of the worker. What a command starts has them, too.
  std::uint64_t most_open_files = 0;    ///< RLIMIT_NOFILE; at least 16
  std::uint64_t most_processes = 0;     ///< RLIMIT_NPROC: of all that the user runs; not for root
  std::uint64_t most_memory_bytes = 0;  ///< RLIMIT_AS: address space of each process

  /// Control group whose out-of-memory kills count; empty: the one of this process.
  std::string cgroup_folder;
};

/// Every fault of `options` at once, one sentence each; empty when they can be used.
[[nodiscard]] std::vector<std::string> validate(const ExecOptions& options);

/// Runs every job by one command. Starts a thread, and a small process that ends what commands
/// have started should this process be killed.
///
/// Requires: valid options; SIGCHLD is not ignored, and nobody waits for children that are not his
///   own, or it cannot be told how a command ended: that counts as its death.
[[nodiscard]] std::unique_ptr<JobRunner> make_exec_runner(ExecOptions options);

}  // namespace postrider
