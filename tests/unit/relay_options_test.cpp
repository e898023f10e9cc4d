#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <postrider/relay_values.hpp>

namespace postrider {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct OptionCase {
  std::string field;
  std::function<void(RelayOptions&)> change;
};

TEST(RelayOptions, The_defaults_can_be_used) {
  EXPECT_THAT(validate(RelayOptions{}), IsEmpty());
}

TEST(RelayOptions, Values_at_their_bounds_can_be_used) {
  const std::vector<OptionCase> rows = {
      {"name", [](auto& o) { o.name.assign(64, 'x'); }},
      {"batch", [](auto& o) { o.batch = 1; }},
      {"batch", [](auto& o) { o.batch = 10'000; }},
      {"batch_bytes", [](auto& o) { o.batch_bytes = 1U << 10U; }},
      {"batch_bytes", [](auto& o) { o.batch_bytes = 1U << 30U; }},
      {"sleep", [](auto& o) { o.sleep = milliseconds(1); }},
      {"sleep", [](auto& o) { o.sleep = hours(1); }},
      {"lease_time",
       [](auto& o) {
         o.lease_time = milliseconds(200);
         o.lease_renewal = milliseconds(50);
       }},
      {"lease_time", [](auto& o) { o.lease_time = minutes(10); }},
      {"lease_renewal", [](auto& o) { o.lease_renewal = o.lease_time / 3; }},
      {"drain_timeout", [](auto& o) { o.drain_timeout = milliseconds(0); }},
      {"retention.events", [](auto& o) { o.retention.events = milliseconds(0); }},
      {"retention.events", [](auto& o) { o.retention.events = milliseconds(1000); }},
      {"retention.receipts", [](auto& o) { o.retention.receipts = hours(24 * 3650); }},
      {"retention.workers", [](auto& o) { o.retention.workers = milliseconds(0); }},
  };
  for (const auto& row : rows) {
    RelayOptions options;
    row.change(options);
    EXPECT_THAT(validate(options), IsEmpty()) << row.field;
  }
}

TEST(RelayOptions, Every_broken_rule_is_one_fault_that_names_its_option) {
  const std::vector<OptionCase> rows = {
      {"name", [](auto& o) { o.name.clear(); }},
      {"name", [](auto& o) { o.name.assign(65, 'x'); }},
      {"batch", [](auto& o) { o.batch = 0; }},
      {"batch", [](auto& o) { o.batch = 10'001; }},
      {"batch_bytes", [](auto& o) { o.batch_bytes = (1U << 10U) - 1; }},
      {"batch_bytes", [](auto& o) { o.batch_bytes = (1U << 30U) + 1; }},
      {"sleep", [](auto& o) { o.sleep = milliseconds(0); }},
      {"sleep", [](auto& o) { o.sleep = hours(1) + milliseconds(1); }},
      {"lease_time", [](auto& o) { o.lease_time = minutes(10) + milliseconds(1); }},
      {"lease_renewal", [](auto& o) { o.lease_renewal = milliseconds(49); }},
      {"lease_renewal", [](auto& o) { o.lease_renewal = o.lease_time / 3 + milliseconds(1); }},
      {"settle_patience", [](auto& o) { o.settle_patience = milliseconds(0); }},
      {"probe_least", [](auto& o) { o.probe_least = milliseconds(0); }},
      {"probe_most", [](auto& o) { o.probe_most = o.probe_least - milliseconds(1); }},
      {"drain_timeout", [](auto& o) { o.drain_timeout = milliseconds(-1); }},
      {"store_timeout", [](auto& o) { o.store_timeout = milliseconds(0); }},
      {"retention.events", [](auto& o) { o.retention.events = milliseconds(999); }},
      {"retention.events", [](auto& o) { o.retention.events = milliseconds(-1); }},
      {"retention.keys", [](auto& o) { o.retention.keys = milliseconds(1); }},
      {"retention.workers", [](auto& o) { o.retention.workers = milliseconds(999); }},
      {"retention.receipts",
       [](auto& o) { o.retention.receipts = hours(24 * 3650) + milliseconds(1); }},
  };
  for (const auto& row : rows) {
    RelayOptions options;
    row.change(options);
    const auto faults = validate(options);
    ASSERT_THAT(faults, SizeIs(1)) << row.field;
    EXPECT_THAT(faults[0], HasSubstr(row.field));
    EXPECT_TRUE(faults[0].ends_with('.')) << faults[0];
  }
}

TEST(RelayOptions, All_faults_are_told_at_once) {
  RelayOptions options;
  options.name.clear();
  options.batch = 0;
  options.sleep = milliseconds(0);

  EXPECT_THAT(validate(options), SizeIs(3));
}

}  // namespace
}  // namespace postrider
