#pragma once
/// \file
/// A child process as we start it: leader of a process group of its own, with nothing of ours but
/// what it is given, and killed by the kernel when the thread that started it ends.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include <postrider/result.hpp>

#include "base/descriptor.hpp"

namespace postrider::runner {

/// As of setrlimit(2); sets both the soft and the hard limit.
struct ResourceLimit {
  int resource = 0;  ///< RLIMIT_…
  std::uint64_t most = 0;
};

struct Command {
  std::string program;                   ///< path of an executable file, see `find_program`
  std::vector<std::string> arguments;    ///< with the program's name in front
  std::vector<std::string> environment;  ///< NAME=value, and nothing else
  std::vector<ResourceLimit> limits;
  /// Standard output and standard error are our standard error; else both are `Child::output`.
  bool inherit_output = false;
};

/// What a child finds its end of `Child::result` under.
inline constexpr int result_descriptor = 3;
/// How many descriptors a running child costs us.
inline constexpr std::size_t descriptors_per_child = 5;

/// A process that was started and has not been waited for. Our ends of its pipes do not block.
struct Child {
  pid_t pid = -1;
  Descriptor exit;    ///< a pidfd: readable when the process has ended
  Descriptor input;   ///< its standard input
  Descriptor output;  ///< what it writes for people; none when that is inherited
  Descriptor result;  ///< what it writes into `result_descriptor`
  /// Holds the errno with which the program could not be executed. The process has ended then.
  Descriptor start_error;
};

/// Starts a process. The caller waits for it with `reap`.
///
/// Thread safety: any thread; the process dies with the one that calls this.
/// Errors: `unavailable` when there are no descriptors or processes left.
[[nodiscard]] Result<Child> spawn(const Command& command);

/// Sends `signal` to the process and all that it has started and that has not left its group.
/// Requires: the process has not been waited for, or its number may be another's.
void signal_group(const Child& child, int signal) noexcept;

/// How a process ended: by a signal, or with an exit code; with neither when somebody else in this
/// program has waited for it.
struct ExitStatus {
  int signal = 0;
  int exit_code = -1;
};

/// Waits for a process that has ended.
[[nodiscard]] ExitStatus reap(const Child& child) noexcept;

/// Where a program is, by PATH when its name has no slash; empty when it is nowhere.
[[nodiscard]] std::string find_program(const std::string& name);

}  // namespace postrider::runner
