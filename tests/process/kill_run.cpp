#include "process/kill_run.hpp"

#include <chrono>
#include <csignal>
#include <map>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

namespace postrider::testing {
namespace {

constexpr milliseconds patience{30'000};

void write_events(const KillRun& run, int from, int to) {
  std::vector<NewEvent> added;
  for (int i = from; i < to; ++i) {
    NewEvent event;
    event.type = "order.changed";
    event.aggregate = Aggregate{"order", std::to_string(i % run.aggregates)};
    event.payload = "{\"number\":" + std::to_string(i) + "}";
    added.push_back(std::move(event));
  }
  const auto ids = run.open_store()->add(added, Deadline::after(patience));
  ASSERT_TRUE(ids) << describe(ids.error());
}

void expect_sound(const KillRun& run, const std::vector<Arrived>& arrived) {
  std::map<std::string, std::string> bytes_of;
  std::map<std::string, std::int64_t> last_of;
  for (const auto& one : arrived) {
    const auto [first, is_first] = bytes_of.emplace(one.id, one.bytes);
    if (!is_first) {
      EXPECT_EQ(first->second, one.bytes) << "a repeat differs from the first";
      continue;
    }
    auto& last = last_of[one.aggregate];
    EXPECT_LT(last, one.seq) << "aggregate " << one.aggregate << " arrived out of order";
    last = one.seq;
  }
  EXPECT_EQ(bytes_of.size(), static_cast<std::size_t>(run.events));
  EXPECT_EQ(last_of.size(), static_cast<std::size_t>(run.aggregates));
}

}  // namespace

const std::string_view relay_settings = R"(
[relay]
batch = 4
lease_time = "300ms"
lease_renewal = "100ms"
sleep = "10ms"
)";

void expect_survival(Workshop& shop, const KillRun& run) {
  const auto random = seeded_random(20261129);
  const int portion = run.events / run.kills;
  int amid = 0;  // kills with work left
  for (int kill = 0; kill < run.kills; ++kill) {
    const auto before = run.progress();
    write_events(run, portion * kill, portion * (kill + 1));
    const auto aim = 1 + random->next() % (static_cast<std::uint64_t>(portion) * 3 / 4);
    const auto relay = shop.start({"relay", "--loop"});
    const auto until = Deadline::after(patience);
    while (run.progress() < before + aim * run.progress_per_event && !until.passed())
      std::this_thread::yield();
    relay->signal(SIGKILL);
    EXPECT_EQ(relay->finish().code, 128 + SIGKILL);
    EXPECT_FALSE(until.passed()) << "the relay does not go on";
    const auto all = static_cast<std::size_t>(portion) * run.progress_per_event;
    if (run.progress() < before + all) ++amid;
  }
  EXPECT_GE(amid, run.kills / 4) << "too few kills met a relay at work";

  std::this_thread::sleep_for(milliseconds(400));  // the last lease runs out
  const auto drain = shop.run({"relay", "--drain"});
  ASSERT_EQ(drain.code, 0) << drain.err;
  expect_sound(run, run.arrived());
}

}  // namespace postrider::testing
