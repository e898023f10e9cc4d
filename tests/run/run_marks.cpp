// Part of every test program. Within a run of scripts/run-tests, the program has a temporary folder
// of its own, RUN/<process id>, and writes into RUN/<process id>/.tests which tests it runs: so
// what it leaves behind has a name. The folder itself stays, and goes with the run.

#include "run/run_marks.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include <gtest/gtest.h>

namespace postrider::testing {
namespace {

class RunMarks final : public ::testing::EmptyTestEventListener {
 public:
  void OnTestProgramStart(const ::testing::UnitTest& /*program*/) override {
    const char* const run = std::getenv(run_variable);  // NOLINT(concurrency-mt-unsafe)
    if (run == nullptr || *run == '\0') return;
    folder_ = std::string(run) + "/" + std::to_string(::getpid());
    ::mkdir(folder_.c_str(), 0711);
    ::chmod(folder_.c_str(), 0711);  // Servers under another user have their folders in it.
    set("TMPDIR", folder_);
    enter("");
  }

  void OnTestSuiteStart(const ::testing::TestSuite& suite) override { enter(suite.name()); }

  void OnTestStart(const ::testing::TestInfo& test) override {
    enter(std::string(test.test_suite_name()) + "." + test.name());
  }

 private:
  void enter(const std::string& name) {
    if (folder_.empty()) return;
    set(test_variable, name);
    std::ofstream(folder_ + "/.tests", std::ios::app) << name << "\n";
  }

  static void set(const char* name, const std::string& value) {
    ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): between tests
  }

  std::string folder_;
};

// Before `main`, which is GoogleTest's.
[[maybe_unused]] const bool listening = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new RunMarks);
  return true;
}();

}  // namespace
}  // namespace postrider::testing
