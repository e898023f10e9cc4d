// kill -9 of the relay between SQLite and a file (F1 to F4).
#include <filesystem>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <postrider/store/sqlite.hpp>

#include "process/drain_run.hpp"

namespace postrider::testing {
namespace {

constexpr std::string_view configuration = R"(
store = "sqlite:app.db"

[[routes]]
name = "all"
to = "file:events.jsonl"
)";

// A line that the kill cut in two was never confirmed; its event has to stand in another one.
std::vector<Arrived> lines_of(const Workshop& shop) {
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

TEST(RelayKill, F1_to_F4_at_50_random_moments_from_SQLite_to_a_file) {
  Workshop shop;
  shop.write("postrider.toml", std::string(configuration) + std::string(relay_settings));
  shop.write("events.jsonl", "");
  ASSERT_EQ(shop.run({"migrate"}).code, 0);
  SqliteOptions options;
  options.path = shop.path("app.db").string();
  DrainRun run;
  run.open_store = [options] { return make_sqlite_store(options); };
  run.arrived = [&shop] { return lines_of(shop); };
  run.progress = [&shop] { return std::filesystem::file_size(shop.path("events.jsonl")); };
  run.progress_per_event = 250;  // bytes of a line, a little less than it has
  expect_survival(shop, run);
}

}  // namespace
}  // namespace postrider::testing
