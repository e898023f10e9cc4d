#pragma once
/// \file
/// A built example as a process, for tests.

#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "servers/child_process.hpp"
#include "servers/loopback.hpp"

namespace postrider::testing {

/// Where a built example is.
[[nodiscard]] inline std::string example(const std::string& name) {
  return std::string(POSTRIDER_TEST_BIN_DIR) + "/../examples/" + name;
}

/// Asks again and again, for at most a minute; false when it does not come to that.
template <class Condition>
[[nodiscard]] bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::usleep(5000);  // Polls an external process.
  }
  return true;
}

/// A service that runs, gone with its object.
class ExampleService {
 public:
  /// Starts it, and waits until it says `ready`.
  ExampleService(const TemporaryFolder& folder, const std::string& name,
                 const std::vector<std::string>& arguments, const std::string& ready);

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] ChildProcess& process() { return *process_; }
  /// What it has written so far, on both streams, over all runs with this name in the folder.
  [[nodiscard]] std::string output() const;

 private:
  std::string output_file_;
  std::unique_ptr<ChildProcess> process_;
  int port_ = 0;
};

}  // namespace postrider::testing
