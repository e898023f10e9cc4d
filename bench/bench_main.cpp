// bench [--out FILE] [--pairs N] [--large-broker-pairs N] [--only BLOCK] [--smoke]
// bench --check FILE
//
// Measures and writes FILE (JSON); or tells which goals FILE misses. Exit codes: 0 good, 1 a goal
// is missed or something failed, 64 usage, 77 a server is not installed here.
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

#include "bench/arguments.hpp"
#include "bench/figures.hpp"
#include "bench/goals.hpp"
#include "bench/rounds.hpp"

namespace postrider::bench {
namespace {

constexpr int skipped = 77;

Sizes sizes_of(const Arguments& arguments) {
  Sizes sizes;
  if (arguments.has("smoke")) sizes = {300, 600, 1, 1, 100, {}};
  sizes.small = arguments.number("small", sizes.small);
  sizes.large = arguments.number("large", sizes.large);
  sizes.pairs = static_cast<int>(arguments.number("pairs", sizes.pairs));
  sizes.large_broker_pairs =
      static_cast<int>(arguments.number("large-broker-pairs", sizes.large_broker_pairs));
  if (arguments.has("only")) sizes.only = {arguments.text("only")};
  return sizes;
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

int measure(const Arguments& arguments, const std::string& programs) {
  if (const auto why = why_not(); !why.empty()) {
    std::cerr << "bench: " << why << "\n";
    return std::getenv("CI") == nullptr ? skipped : 1;
  }
  const auto results = Run(sizes_of(arguments), programs).measure();
  if (arguments.has("out")) {
    const std::filesystem::path file = arguments.text("out");
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << results.dump(2) << "\n";
  }
  print(results);
  return 0;
}

}  // namespace
}  // namespace postrider::bench

int main(int count, char** words) {
  using namespace postrider::bench;
  try {
    const Arguments arguments(count, words);
    if (arguments.has("check")) return check(arguments.text("check"));
    return measure(arguments, std::filesystem::canonical(words[0]).parent_path());
  } catch (const std::invalid_argument& wrong) {
    std::cerr << "bench: " << wrong.what() << "\n";
    return 64;
  } catch (const std::exception& failure) {
    std::cerr << "bench: " << failure.what() << "\n";
    return 1;
  }
}
