#include "scenarios/scenario.hpp"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

namespace postrider::scenarios {
namespace {

constexpr std::string_view heading = "scenario: ";

[[noreturn]] void refuse(const std::string& path, int line, const std::string& why) {
  std::cerr << path << ":" << line << ": " << why << "\n";
  std::exit(EXIT_FAILURE);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream text(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string word; text >> word;)
    words.push_back(word);
  return words;
}

}  // namespace

std::vector<Scenario> load_scenarios(const std::string& path) {
  std::ifstream input(path);
  if (!input) refuse(path, 0, "cannot be opened");
  std::vector<Scenario> scenarios;
  int number = 0;
  for (std::string line; std::getline(input, line);) {
    ++number;
    if (line.starts_with(heading)) {
      scenarios.push_back({path, line.substr(heading.size()), {}});
      continue;
    }
    auto words = words_of(line);
    if (words.empty()) continue;
    if (scenarios.empty()) refuse(path, number, "a command before the first 'scenario: '");
    scenarios.back().commands.push_back({number, std::move(words)});
  }
  if (scenarios.empty()) refuse(path, number, "holds no scenario");
  return scenarios;
}

}  // namespace postrider::scenarios
