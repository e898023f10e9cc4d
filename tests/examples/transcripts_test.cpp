// The examples that tell a story, read as a newcomer reads them.
#include <gtest/gtest.h>

#include "cli/program.hpp"
#include "examples/example_service.hpp"
#include "golden/golden.hpp"

namespace postrider::testing {
namespace {

Finished run_example(const std::string& name) {
  Workshop folder;
  const auto temporary = folder.path("tmp");
  std::filesystem::create_directory(temporary);
  folder.variables["TMPDIR"] = temporary;
  auto finished = folder.run_program({example(name)});
  EXPECT_TRUE(std::filesystem::is_empty(temporary)) << "leaves something behind";
  return finished;
}

void expect_transcript(const std::string& name) {
  const auto finished = run_example(name);
  EXPECT_EQ(finished.code, 0) << finished.err;
  expect_golden("example_" + name + ".txt", finished.out);
}

TEST(Examples, R001_R002_R003_the_dual_write_loses_events_and_makes_some_up) {
  expect_transcript("dual_write");
}

TEST(Examples, R004_the_outbox_keeps_database_and_broker_together_through_the_same_faults) {
  expect_transcript("outbox");
}

TEST(Examples, R125_four_messages_over_a_flaky_broker_have_their_effect_once_and_in_order) {
  expect_transcript("flaky_broker");
}

TEST(Examples, Three_jobs_of_one_event_each_end_by_themselves_also_the_one_whose_process_dies) {
  expect_transcript("three_jobs");
}

}  // namespace
}  // namespace postrider::testing
