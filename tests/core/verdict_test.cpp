#include "core/verdict.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace postrider::core {
namespace {

using Kind = Verdict::Kind;

const std::vector<milliseconds> two_delays = {milliseconds(1000), milliseconds(5000)};

struct Row {
  std::string name;
  Outcome outcome;
  bool outage = false;
  int attempts = 0;
  Kind kind = Kind::completed;
  int attempts_after = 0;
  milliseconds wait{0};
};

TEST(Verdict, Follows_from_outcome_attempts_and_delays) {
  const auto confirmed = Outcome::confirmed();
  const auto refused = Outcome::refused("nacked", "");
  const auto rejected = Outcome::rejected("too_large", "");
  const auto unknown = Outcome::unknown("timed_out", "");
  const auto down = Outcome::unavailable("down", "");
  const std::vector<Row> rows = {
      {"confirmed completes", confirmed, false, 0, Kind::completed, 0, {}},
      {"confirmed completes after failures", confirmed, false, 2, Kind::completed, 2, {}},
      {"the first failure waits the first delay", refused, false, 0, Kind::retry, 1,
       milliseconds(1000)},
      {"the second failure waits the second delay", refused, false, 1, Kind::retry, 2,
       milliseconds(5000)},
      {"the third failure is final", refused, false, 2, Kind::failed, 3, {}},
      {"unknown of one message uses an attempt", unknown, false, 0, Kind::retry, 1,
       milliseconds(1000)},
      {"unknown in an outage uses none", unknown, true, 0, Kind::unchanged, 0, {}},
      {"unavailable uses none", down, true, 2, Kind::unchanged, 2, {}},
      {"unavailable that counts uses one", down, false, 2, Kind::failed, 3, {}},
      {"rejected is final at once", rejected, false, 0, Kind::failed, 1, {}},
      {"rejected is final in an outage too", rejected, true, 0, Kind::failed, 1, {}},
      {"a dead address is final", Outcome::gone(""), false, 0, Kind::failed, 1, {}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto verdict = judge(row.outcome, row.outage, row.attempts, two_delays);
    EXPECT_EQ(verdict.kind, row.kind);
    EXPECT_EQ(verdict.attempts, row.attempts_after);
    EXPECT_EQ(verdict.wait, row.wait);
  }
}

TEST(Verdict, Without_delays_the_first_failure_is_final) {
  const auto verdict = judge(Outcome::refused("nacked", "no room"), false, 0, {});
  EXPECT_EQ(verdict.kind, Kind::failed);
  EXPECT_EQ(verdict.code, "nacked");
  EXPECT_EQ(verdict.detail, "no room");
}

}  // namespace
}  // namespace postrider::core
