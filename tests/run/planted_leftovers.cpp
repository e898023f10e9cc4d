// Tests that leave something behind, and pass. scripts/find-leftovers --self-test runs them in a
// run of their own, and expects to find each under its name.

#include <spawn.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "run/run_marks.hpp"
#include "servers/loopback.hpp"

extern char** environ;  // NOLINT: POSIX names it

namespace postrider::testing {
namespace {

/// Sleeps until the self-test kills it. Another folder or environment, if it is given one.
void leave_process(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const auto& word : command)
    arguments.push_back(const_cast<char*>(word.c_str()));  // NOLINT: posix_spawn changes nothing
  arguments.push_back(nullptr);
  pid_t pid = 0;
  ASSERT_EQ(::posix_spawnp(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ), 0);
}

TEST(PlantedLeftovers, A_folder_stays) {
  const auto* const never_destroyed = new TemporaryFolder("planted");
  EXPECT_TRUE(std::filesystem::is_directory(never_destroyed->path()));
}

TEST(PlantedLeftovers, A_process_stays) {
  leave_process({"sleep", "600"});
}

TEST(PlantedLeftovers, A_process_stays_that_forgot_its_environment) {
  leave_process({"env", "-i", "-C", std::filesystem::temp_directory_path(), "sleep", "601"});
}

TEST(PlantedLeftovers, Nothing_stays) {
  const TemporaryFolder folder("planted");
  EXPECT_TRUE(std::filesystem::is_directory(folder.path()));
}

}  // namespace
}  // namespace postrider::testing
