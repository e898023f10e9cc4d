#pragma once
/// \file
/// What a backend leaves out of its suite is a decision, and stands in
/// tests/golden/conformance_skips.txt.

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

// The path of the list; without it there is nothing to compare with.
#ifndef POSTRIDER_CONFORMANCE_SKIPS
#define POSTRIDER_CONFORMANCE_SKIPS ""
#endif

namespace postrider::testing {

/// Names of skipped tests by "suite/case". A line is "suite/case test", or "suite/case -" for a
/// case that skips nothing; '#' begins a comment.
using SkipList = std::map<std::string, std::set<std::string>>;

inline SkipList read_skip_list() {
  SkipList list;
  std::ifstream file(POSTRIDER_CONFORMANCE_SKIPS);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    std::string backend;
    std::string test;
    words >> backend >> test;
    list[backend].insert(test);
  }
  return list;
}

/// Fails the running test when it was skipped and the list does not say so, or the other way round.
///
/// Called at the end of a test. Checks nothing for a backend's case that the list does not name,
/// and nothing in a suite that was built outside of our tree.
inline void expect_known_skip(const std::string& case_name) {
  static const auto list = read_skip_list();
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string backend = std::string(info->test_suite_name()) + "/" + case_name;
  const auto known = list.find(backend);
  if (known == list.end() || info->result()->Failed()) return;

  const std::string name = info->name();
  const auto test = name.substr(0, name.find('/'));
  const bool listed = known->second.contains(test);
  if (info->result()->Skipped() && !listed) {
    ADD_FAILURE() << "skipped without being listed. Make it run, or add the line '" << backend
                  << " " << test << "' to " << POSTRIDER_CONFORMANCE_SKIPS;
  }
  if (!info->result()->Skipped() && listed) {
    ADD_FAILURE() << "listed as skipped, but it ran. Remove the line '" << backend << " " << test
                  << "' from " << POSTRIDER_CONFORMANCE_SKIPS;
  }
}

}  // namespace postrider::testing
