// Measures and writes a file of results; or tells which goals such a file misses. Exit codes: 0
// good, 1 a goal is missed or something failed, 64 usage, 77 a server is not installed here.
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/figures.hpp"
#include "bench/goals.hpp"
#include "bench/rounds.hpp"

namespace postrider::bench {
namespace {

constexpr int skipped = 77;

struct Wishes {
  Sizes sizes;
  std::string out;
  std::string check;
};

// What has a default here is bounded so that a slip of a finger does not fill the disk.
void read_words(CLI::App& app, Wishes& wishes, int count, char** words) {
  constexpr std::int64_t most_events = 100'000'000;
  constexpr std::int64_t most_jobs = 1'000'000;
  auto& sizes = wishes.sizes;
  app.add_option("--out", wishes.out, "Write the results here, as JSON")->type_name("FILE");
  app.add_option("--check", wishes.check, "Measure nothing; tell which goals FILE misses")
      ->type_name("FILE");
  app.add_option("--only", sizes.only, "Only these blocks; all when left out")
      ->check(CLI::IsMember(block_names()));
  app.add_option("--pairs", sizes.pairs, "Pairs of product and limit")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--large-broker-pairs", sizes.large_broker_pairs, "The same of rabbitmq_large")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--small", sizes.small, "Events of the small drains")
      ->check(CLI::Range(std::int64_t{1}, most_events))
      ->capture_default_str();
  app.add_option("--large", sizes.large, "Events of the large drains")
      ->check(CLI::Range(std::int64_t{1}, most_events))
      ->capture_default_str();
  app.add_option("--jobs", sizes.jobs, "Jobs that workers complete")
      ->check(CLI::Range(std::int64_t{1}, most_jobs))
      ->capture_default_str();
  app.add_flag_callback(
      "--smoke", [&sizes] { sizes = {300, 600, 1, 1, 100, 300, 10, {}}; },
      "A few hundred events and jobs through every program");
  app.footer(
      "Examples:\n  bench --out results.json\n  bench --only writer --pairs 3\n"
      "  bench --check results.json");
  app.parse(count, words);
}

void print(const nlohmann::ordered_json& results) {
  for (const auto& block : results.at("blocks"))
    std::cout << "machine " << block.dump() << "\n";
  std::cout << table_heading();
  for (const auto& figure : results.at("figures"))
    std::cout << table_line(figure);
}

int check(const std::string& file) {
  std::ifstream input(file);
  if (!input) throw std::runtime_error("there is no " + file + "; run: make bench");
  const auto results = nlohmann::ordered_json::parse(input);
  print(results);
  const auto missed = missed_goals(results);
  for (const auto& line : missed)
    std::cout << "MISSED " << line << "\n";
  std::cout << goals().size() - missed.size() << " of " << goals().size() << " goals are met\n";
  return missed.empty() ? 0 : 1;
}

std::string why_not() {
  const auto postgres = testing::why_no_postgres();
  return postgres.empty() ? testing::why_no_rabbitmq() : postgres;
}

// Written beside and then moved, so that there is never half a file.
void write(const std::filesystem::path& file, const nlohmann::ordered_json& results) {
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
  auto beside = file;
  beside += ".new";
  std::ofstream(beside) << results.dump(2) << "\n";
  std::filesystem::rename(beside, file);
}

int measure(const Wishes& wishes, const std::string& programs) {
  if (const auto why = why_not(); !why.empty()) {
    std::cerr << "bench: " << why << "\n";
    return std::getenv("CI") == nullptr ? skipped : 1;
  }
  const auto results = Run(wishes.sizes, programs).measure([&](const auto& so_far) {
    if (!wishes.out.empty()) write(wishes.out, so_far);
  });
  print(results);
  return 0;
}

}  // namespace
}  // namespace postrider::bench

int main(int count, char** words) {
  using namespace postrider::bench;
  constexpr int usage = 64;
  CLI::App app("How fast Postrider is, beside what libpq and rabbitmq-c do alone.", "bench");
  try {
    Wishes wishes;
    read_words(app, wishes, count, words);
    if (!wishes.check.empty()) return check(wishes.check);
    return measure(wishes, std::filesystem::canonical(words[0]).parent_path());
  } catch (const CLI::ParseError& ended) {
    return app.exit(ended) == 0 ? 0 : usage;
  } catch (const std::exception& failure) {
    std::cerr << "bench: " << failure.what() << "\n";
    return 1;
  }
}
