#pragma once
/// \file
/// A server process that a test starts, and that is gone with everything below it when its object
/// is, also when the test program crashes.

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace postrider::testing {

using Environment = std::map<std::string, std::string>;

/// Thread safety: one thread at a time; it must be one that outlives the process, as the kernel
/// kills the process together with the thread that started it.
class ChildProcess {
 public:
  /// Starts `arguments[0]` in a session of its own, with `environment`, the marks of the test run
  /// and nothing else, and its output appended to `output_file`.
  ChildProcess(const std::vector<std::string>& arguments, const Environment& environment,
               const std::string& output_file);
  ~ChildProcess() { kill(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] bool running();
  /// SIGTERM, and SIGKILL to what is still there after `patience`.
  void stop(std::chrono::milliseconds patience);
  /// SIGKILL. Returns when the process and its descendants are gone.
  void kill();
  /// Any other signal, to the process alone.
  void signal(int number);
  /// Waits for its end by itself; its exit code, or -1 when it did not end in time or was killed.
  int wait(std::chrono::milliseconds patience);

 private:
  pid_t pid_ = -1;
  int exit_code_ = -1;
};

/// Where `name` is in PATH; empty when it is nowhere.
[[nodiscard]] std::string find_program(const std::string& name);

}  // namespace postrider::testing
