#pragma once
/// \file
/// What a process hands on to the processes that it starts with an environment of their own, so
/// that scripts/find-leftovers can tell that they belong to this test run, and to which test.

#include <array>
#include <cstdlib>
#include <map>
#include <string>

namespace postrider::testing {

/// The folder of the whole run. Set by scripts/run-tests; a test that is started by hand has none.
inline constexpr const char* run_variable = "POSTRIDER_TEST_RUN";
/// The test that runs now.
inline constexpr const char* test_variable = "POSTRIDER_TEST_NAME";

/// The variables that mark our descendants, as far as they are set here.
[[nodiscard]] inline std::map<std::string, std::string> marks_of_run() {
  std::map<std::string, std::string> marks;
  for (const char* name : std::array{run_variable, test_variable, "TMPDIR"}) {
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    if (value != nullptr) marks[name] = value;
  }
  return marks;
}

}  // namespace postrider::testing
