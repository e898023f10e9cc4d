#include "process/drain_run.hpp"

#include <csignal>
#include <map>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "process/patience.hpp"

namespace postrider::testing {

const std::string_view relay_settings = R"(
[relay]
batch = 4
lease_time = "300ms"
lease_renewal = "100ms"
sleep = "10ms"
probe_most = "1s"
)";

void write_events(const DrainRun& run, int from, int to) {
  std::vector<NewEvent> added;
  for (int i = from; i < to; ++i) {
    NewEvent event;
    event.type = "order.changed";
    event.aggregate = Aggregate{"order", std::to_string(i % run.aggregates)};
    event.payload = "{\"number\":" + std::to_string(i) + "}";
    added.push_back(std::move(event));
  }
  const auto ids = run.open_store()->add(added, Deadline::after(process_patience));
  ASSERT_TRUE(ids) << describe(ids.error());
}

void drain_disturbed(const DrainRun& run, const Disturbance& disturbance) {
  const auto random = seeded_random(20261129);
  const int portion = run.events / run.portions;
  const auto all = static_cast<std::size_t>(portion) * run.progress_per_event;
  int amid = 0;  // strikes with work left
  for (int number = 0; number < run.portions; ++number) {
    const auto before = run.progress();
    const auto aim = 1 + random->next() % (static_cast<std::uint64_t>(portion) * 3 / 4);
    write_events(run, portion * number, portion * (number + 1));
    disturbance.begin(number);
    std::size_t reached = 0;
    EXPECT_TRUE(comes_true([&] {
      reached = run.progress();
      return reached >= before + aim * run.progress_per_event;
    })) << "the relay does not go on";
    if (reached < before + all) ++amid;
    disturbance.strike(number);
    if (::testing::Test::HasFailure()) return;  // What comes would only wait for what never will.
  }
  EXPECT_GE(amid, run.portions / 4) << "too few strikes met a relay at work";
}

bool all_arrive(const DrainRun& run) {
  const auto all = static_cast<std::size_t>(run.events) * run.progress_per_event;
  std::set<std::string> ids;
  return comes_true([&] {
    if (run.progress() < all) return false;
    for (const auto& one : run.arrived())
      ids.insert(one.id);
    return ids.size() == static_cast<std::size_t>(run.events);
  });
}

std::size_t repeats_among(const std::vector<Arrived>& arrived) {
  std::set<std::string> ids;
  for (const auto& one : arrived)
    ids.insert(one.id);
  return arrived.size() - ids.size();
}

void expect_ordered(const std::vector<Arrived>& arrived) {
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
}

void expect_sound(const DrainRun& run, const std::vector<Arrived>& arrived) {
  expect_ordered(arrived);
  EXPECT_EQ(arrived.size() - repeats_among(arrived), static_cast<std::size_t>(run.events));
}

void expect_survival(Workshop& shop, const DrainRun& run) {
  std::unique_ptr<Running> relay;
  drain_disturbed(run, {[&](int) {
                          relay = shop.start({"relay", "--loop"});
                        },
                        [&](int) {
                          relay->signal(SIGKILL);
                          EXPECT_EQ(relay->finish().code, 128 + SIGKILL);
                        }});
  const auto drain = shop.run({"relay", "--drain"});
  EXPECT_EQ(drain.code, 0) << drain.err;
  const auto dead = shop.run({"dead", "list", "--format", "json"});
  EXPECT_EQ(dead.out.find("event_id"), std::string::npos) << dead.out;
  expect_sound(run, run.arrived());
}

}  // namespace postrider::testing
