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
  int amid = 0;  // kills with work done and work left
  std::size_t before = 0;
  for (int kill = 0; kill < run.kills; ++kill) {
    const int written = portion * (kill + 1);
    write_events(run, portion * kill, written);
    const auto relay = shop.start({"relay", "--loop"});
    // The last owner's lease ends 200 to 300 ms after its death; the rest is chance, as it should
    // be.
    std::this_thread::sleep_for(milliseconds(230 + random->next() % 160));
    relay->signal(SIGKILL);
    EXPECT_EQ(relay->finish().code, 128 + SIGKILL);
    const auto arrived = run.arrived().size();
    if (arrived > before && arrived < static_cast<std::size_t>(written)) ++amid;
    before = arrived;
  }
  EXPECT_GE(amid, 5) << "too few kills met a relay at work: make it slower or faster";

  std::this_thread::sleep_for(milliseconds(400));  // the last lease runs out
  const auto drain = shop.run({"relay", "--drain"});
  ASSERT_EQ(drain.code, 0) << drain.err;
  expect_sound(run, run.arrived());
}

}  // namespace postrider::testing
