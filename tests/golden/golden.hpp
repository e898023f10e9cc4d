#pragma once
/// \file
/// Golden files: what people see, kept as text in tests/golden and reviewed like code.
///
/// A run with POSTRIDER_UPDATE_GOLDEN=1 writes the files anew; the difference then stands in the
/// commit. Used by test programs only, which know POSTRIDER_TEST_SOURCE_DIR.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace postrider::testing {

inline void expect_golden(const std::string& name, const std::string& text) {
  const auto path = std::string(POSTRIDER_TEST_SOURCE_DIR "/tests/golden/") + name;
  if (std::getenv("POSTRIDER_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file.is_open()) << path << " is missing; run with POSTRIDER_UPDATE_GOLDEN=1";
  const std::string golden((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text, golden) << "differs from " << path;
}

}  // namespace postrider::testing
