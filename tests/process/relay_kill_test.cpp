// The relay process is killed at random moments while it drains, again and again. Nothing is lost,
// first occurrences keep the order of their aggregate, and repeats have the same bytes (F1 to F4).
#include <chrono>
#include <csignal>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <postrider/store/sqlite.hpp>

#include "cli/program.hpp"

namespace postrider::testing {
namespace {

constexpr int events = 10'000;
constexpr int aggregates = 100;
constexpr int kills = 50;
constexpr milliseconds patience{30'000};

constexpr std::string_view configuration = R"(
store = "sqlite:app.db"

[relay]
batch = 4
lease_time = "300ms"
lease_renewal = "100ms"
sleep = "10ms"

[[routes]]
name = "all"
to = "file:events.jsonl"
)";

void write_events(const Workshop& shop, int from, int to) {
  SqliteOptions options;
  options.path = shop.path("app.db").string();
  std::vector<NewEvent> added;
  for (int i = from; i < to; ++i) {
    NewEvent event;
    event.type = "order.changed";
    event.aggregate = Aggregate{"order", std::to_string(i % aggregates)};
    event.payload = "{\"number\":" + std::to_string(i) + "}";
    added.push_back(std::move(event));
  }
  const auto ids = make_sqlite_store(options)->add(added, Deadline::after(patience));
  ASSERT_TRUE(ids) << describe(ids.error());
}

struct Arrived {
  std::int64_t seq = 0;
  std::string aggregate;
  std::string id;
  std::string line;
};

// A line that the kill cut in two was never confirmed; its event has to stand in another one.
std::vector<Arrived> arrived(const Workshop& shop) {
  std::vector<Arrived> all;
  std::istringstream lines(shop.read("events.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    if (record.is_discarded()) continue;
    all.push_back({std::stoll(record.at("seq").get<std::string>()),
                   record.at("aggregate_id").get<std::string>(), record.at("id").get<std::string>(),
                   line});
  }
  return all;
}

TEST(RelayKill, F1_to_F4_killed_at_50_random_moments_it_loses_nothing_and_keeps_order) {
  Workshop shop;
  shop.write("postrider.toml", configuration);
  ASSERT_EQ(shop.run({"migrate"}).code, 0);
  const auto random = seeded_random(20261129);
  int amid = 0;  // kills with work done and work left
  std::size_t before = 0;
  for (int kill = 0; kill < kills; ++kill) {
    const int written = events / kills * (kill + 1);
    write_events(shop, events / kills * kill, written);
    const auto relay = shop.start({"relay", "--loop"});
    // The last owner's lease ends 200 to 300 ms after its death; the rest is chance, as it should be.
    std::this_thread::sleep_for(milliseconds(230 + random->next() % 160));
    relay->signal(SIGKILL);
    EXPECT_EQ(relay->finish().code, 128 + SIGKILL);
    const auto lines = arrived(shop).size();
    if (lines > before && lines < static_cast<std::size_t>(written)) ++amid;
    before = lines;
  }
  EXPECT_GE(amid, 5) << "too few kills met a relay at work: make it slower or faster";
  std::this_thread::sleep_for(milliseconds(400));  // the last lease runs out
  const auto drain = shop.run({"relay", "--drain"});
  ASSERT_EQ(drain.code, 0) << drain.err;

  std::map<std::string, std::string> line_of;
  std::map<std::string, std::int64_t> last_of;
  for (const auto& one : arrived(shop)) {
    const auto [first, is_first] = line_of.emplace(one.id, one.line);
    if (!is_first) {
      EXPECT_EQ(first->second, one.line) << "a repeat differs from the first";
      continue;
    }
    auto& last = last_of[one.aggregate];
    EXPECT_LT(last, one.seq) << "aggregate " << one.aggregate << " arrived out of order";
    last = one.seq;
  }
  EXPECT_EQ(line_of.size(), static_cast<std::size_t>(events));
  EXPECT_EQ(last_of.size(), static_cast<std::size_t>(aggregates));
}

}  // namespace
}  // namespace postrider::testing
