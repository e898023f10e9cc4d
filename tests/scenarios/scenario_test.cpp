// Every scenario on disk, in every world. The list of files is CMake's, so that a scenario that is
// not registered fails the lint and not silence.
#include <cctype>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "scenarios/player.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/world.hpp"

namespace postrider::scenarios {
namespace {

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all = [] {
    std::vector<Scenario> found;
    for (const std::string file : {POSTRIDER_SCENARIO_FILES}) {
      for (auto& scenario : load_scenarios(file))
        found.push_back(std::move(scenario));
    }
    return found;
  }();
  return all;
}

const std::vector<World>& worlds() {
  static const auto all = all_worlds();
  return all;
}

class Scenarios : public ::testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {};

TEST_P(Scenarios, holds) {
  const auto& [world, scenario] = GetParam();
  if (!worlds().at(world).has_its_servers()) return;
  Player(worlds().at(world)).play(scenarios().at(scenario));
}

std::string identifier(std::string text) {
  for (auto& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
}

std::string case_name(const ::testing::TestParamInfo<Scenarios::ParamType>& info) {
  const auto world = std::get<0>(info.param);
  const auto scenario = std::get<1>(info.param);
  return identifier(worlds()[world].name + "__" + scenarios()[scenario].name);
}

INSTANTIATE_TEST_SUITE_P(All, Scenarios,
                         ::testing::Combine(::testing::Range<std::size_t>(0, worlds().size()),
                                            ::testing::Range<std::size_t>(0, scenarios().size())),
                         case_name);

}  // namespace
}  // namespace postrider::scenarios
