#pragma once
/// \file
/// Commands that are shell scripts, run by an exec runner.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <postrider/runner/exec.hpp>

#include "process/patience.hpp"
#include "run/run_marks.hpp"
#include "runners/runner_kit.hpp"
#include "servers/loopback.hpp"

namespace postrider::testing {

/// Tells whether a process runs; a zombie does not.
inline bool runs(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return false;
  const auto state = line[line.rfind(')') + 2];
  return state != 'Z' && state != 'X';
}

class ExecFixture : public ::testing::Test {
 protected:
  /// A script finds the test's folder in $FOLDER.
  ExecOptions options(const std::string& script) const {
    ExecOptions options;
    options.command = {"/bin/sh", "-c", script};
    options.environment = marks_of_run();
    options.environment["FOLDER"] = folder_.path();
    return options;
  }

  JobRunner& use(const ExecOptions& options) {
    EXPECT_THAT(validate(options), ::testing::IsEmpty());
    runner_ = make_exec_runner(options);
    return *runner_;
  }
  JobRunner& use(const std::string& script) { return use(options(script)); }

  /// Runs one attempt to its end.
  AttemptEnd end_of(const std::string& script) { return end_of(options(script)); }
  AttemptEnd end_of(const ExecOptions& options) {
    auto& runner = use(options);
    runner.start(task(1));
    const auto report = next_report(runner);
    EXPECT_EQ(report.dispatch_id, dispatch(1));
    return report.end;
  }

  std::string path(const std::string& name) const { return folder_.file(name); }
  std::string content(const std::string& name) const {
    std::ifstream file(path(name));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  /// The number that a script writes into a file, with a newline when it is whole.
  pid_t pid_in(const std::string& name) const {
    EXPECT_TRUE(comes_true([&] { return content(name).ends_with('\n'); })) << name;
    return std::atoi(content(name).c_str());
  }

  TemporaryFolder folder_{"exec"};
  std::unique_ptr<JobRunner> runner_;
};

}  // namespace postrider::testing
