// `make demo` as a newcomer sees it, but for the build.
#include <gtest/gtest.h>

#include "cli/program.hpp"
#include "golden/golden.hpp"

namespace postrider::testing {
namespace {

TEST(Demo, ends_by_itself_with_every_promise_kept_and_reads_as_its_golden_transcript) {
  Workshop shop;
  shop.variables["POSTRIDER_BIN"] = std::string(POSTRIDER_TEST_BIN_DIR) + "/postrider";
  const auto demo = shop.run_program({std::string(POSTRIDER_TEST_SOURCE_DIR) + "/scripts/demo"});
  EXPECT_EQ(demo.code, 0) << demo.err;
  expect_golden("demo.txt", demo.out);
}

}  // namespace
}  // namespace postrider::testing
