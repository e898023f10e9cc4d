#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <postrider/worker_values.hpp>

namespace postrider {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

WorkerOptions sound_options() {
  WorkerOptions options;
  options.queues = {{"shipping", 1}};
  return options;
}

struct WorkerCase {
  std::string field;
  std::function<void(WorkerOptions&)> change;
};

TEST(WorkerOptions, Defaults_with_a_queue_can_be_used) {
  EXPECT_THAT(validate(sound_options()), IsEmpty());
}

TEST(WorkerOptions, Values_at_their_bounds_can_be_used) {
  const std::vector<WorkerCase> rows = {
      {"name", [](auto& o) { o.name.assign(64, 'x'); }},
      {"queues",
       [](auto& o) {
         o.queues = {{"a", 1}, {"az09_-.", 100}};
       }},
      {"concurrency", [](auto& o) { o.concurrency = 1; }},
      {"concurrency", [](auto& o) { o.concurrency = 1000; }},
      {"heartbeat", [](auto& o) { o.heartbeat = o.dead_after / 4; }},
      {"heartbeat",
       [](auto& o) {
         o.heartbeat = milliseconds(50);
         o.dead_after = milliseconds(200);
       }},
      {"grace",
       [](auto& o) {
         o.grace = milliseconds(0);
         o.hard_grace = milliseconds(0);
         o.kill_grace = milliseconds(0);
       }},
      {"ageing", [](auto& o) { o.ageing = hours(1); }},
  };
  for (const auto& row : rows) {
    auto options = sound_options();
    row.change(options);
    EXPECT_THAT(validate(options), IsEmpty()) << row.field;
  }
}

TEST(WorkerOptions, Every_broken_rule_is_one_fault_that_names_its_option) {
  const std::vector<WorkerCase> rows = {
      {"name", [](auto& o) { o.name.clear(); }},
      {"name", [](auto& o) { o.name.assign(65, 'x'); }},
      {"queues", [](auto& o) { o.queues.clear(); }},
      {"queue ''",
       [](auto& o) {
         o.queues = {{"", 1}};
       }},
      {"queue 'Shipping'",
       [](auto& o) {
         o.queues = {{"Shipping", 1}};
       }},
      {"queue 'a' is named twice",
       [](auto& o) {
         o.queues = {{"a", 1}, {"a", 2}};
       }},
      {"weight of queue 'a'",
       [](auto& o) {
         o.queues = {{"a", 0}};
       }},
      {"weight of queue 'a'",
       [](auto& o) {
         o.queues = {{"a", 101}};
       }},
      {"queues",
       [](auto& o) {
         o.queues.clear();
         for (int i = 0; i < 101; ++i)
           o.queues.push_back({"q" + std::to_string(i), 1});
       }},
      {"concurrency", [](auto& o) { o.concurrency = 0; }},
      {"concurrency", [](auto& o) { o.concurrency = 1001; }},
      {"heartbeat", [](auto& o) { o.heartbeat = milliseconds(49); }},
      {"heartbeat", [](auto& o) { o.heartbeat = minutes(10) + milliseconds(1); }},
      {"dead_after", [](auto& o) { o.dead_after = milliseconds(199); }},
      {"dead_after", [](auto& o) { o.dead_after = hours(1) + milliseconds(1); }},
      {"poll", [](auto& o) { o.poll = milliseconds(0); }},
      {"grace", [](auto& o) { o.grace = milliseconds(-1); }},
      {"hard_grace", [](auto& o) { o.hard_grace = milliseconds(-1); }},
      {"kill_grace", [](auto& o) { o.kill_grace = milliseconds(-1); }},
      {"ageing", [](auto& o) { o.ageing = milliseconds(-1); }},
      {"store_timeout", [](auto& o) { o.store_timeout = milliseconds(99); }},
  };
  for (const auto& row : rows) {
    auto options = sound_options();
    row.change(options);
    const auto faults = validate(options);
    ASSERT_THAT(faults, SizeIs(1)) << row.field;
    EXPECT_THAT(faults[0], HasSubstr(row.field));
    EXPECT_TRUE(faults[0].ends_with('.')) << faults[0];
  }
}

TEST(WorkerOptions, JT_11_a_heartbeat_above_a_quarter_of_the_dead_threshold_is_a_fault) {
  auto options = sound_options();
  options.dead_after = milliseconds(30'000);
  options.heartbeat = milliseconds(7501);

  EXPECT_THAT(validate(options), ElementsAre(HasSubstr("at most a quarter of dead_after")));
  options.heartbeat = options.dead_after;
  EXPECT_THAT(validate(options), SizeIs(1));
  options.heartbeat = milliseconds(7500);
  EXPECT_THAT(validate(options), IsEmpty());
}

}  // namespace
}  // namespace postrider
