// Order and no loss of the relay's core under random faults. A failing seed prints its history.
#include <gtest/gtest.h>

#include <iostream>

#include "simulation/relay_world.hpp"

namespace postrider::simulation {
namespace {

constexpr std::uint64_t seeds = 400;

// How many events were purged on the way.
std::int64_t expect_sound(const WorldOptions& options) {
  RelayWorld world(options);
  const auto violations = world.play();
  if (violations.empty()) return world.purged();
  for (const auto& line : world.history())
    std::cout << line << "\n";
  ADD_FAILURE() << "seed " << options.seed << ": " << violations.front();
  return world.purged();
}

std::int64_t expect_sound_for_all_seeds(WorldOptions options, std::uint64_t most = seeds) {
  std::int64_t purged = 0;
  for (std::uint64_t seed = 1; seed <= most; ++seed) {
    options.seed = seed;
    purged += expect_sound(options);
    if (::testing::Test::HasFailure()) break;
  }
  return purged;
}

TEST(RelaySimulation, One_relay_in_passes_keeps_order_and_loses_nothing) {
  WorldOptions options;
  options.relays = 1;
  options.continuous = false;
  expect_sound_for_all_seeds(options);
}

TEST(RelaySimulation, One_continuous_relay_keeps_order_and_loses_nothing) {
  WorldOptions options;
  options.relays = 1;
  expect_sound_for_all_seeds(options);
}

TEST(RelaySimulation, Three_relays_that_take_over_keep_order_and_lose_nothing) {
  WorldOptions options;
  options.relays = 3;
  expect_sound_for_all_seeds(options);
}

TEST(RelaySimulation, Purging_what_was_delivered_loses_nothing_and_reorders_nothing) {
  WorldOptions options;
  options.relays = 2;
  options.steps = 1200;  // long enough for the second sweep
  EXPECT_GT(expect_sound_for_all_seeds(options, 60), 0);
}

TEST(RelaySimulation, Relays_in_passes_on_one_partition_keep_order_and_lose_nothing) {
  WorldOptions options;
  options.partitions = 1;
  options.continuous = false;
  expect_sound_for_all_seeds(options);
}

TEST(RelaySimulation, A_single_route_keeps_order_and_loses_nothing) {
  WorldOptions options;
  options.routes = 1;
  options.aggregates = 2;
  expect_sound_for_all_seeds(options);
}

TEST(RelaySimulation, R_170_every_event_makes_its_job_once_and_order_holds_beside_it) {
  WorldOptions options;
  options.relays = 3;
  options.jobs = true;
  for (const bool continuous : {true, false}) {
    for (const bool poison : {true, false}) {
      options.continuous = continuous;
      options.poison = poison;
      expect_sound_for_all_seeds(options, seeds / 8);
      if (HasFailure()) return;
    }
  }
}

TEST(RelaySimulation, G10_poison_is_quarantined_within_four_crashes_and_everything_else_arrives) {
  WorldOptions options;
  options.faults = false;
  options.poison = true;
  for (const bool continuous : {true, false}) {
    for (const std::size_t relays : {1, 3}) {
      for (const auto on_failed : {OnFailed::halt, OnFailed::skip}) {
        options.continuous = continuous;
        options.relays = relays;
        options.on_failed = on_failed;
        expect_sound_for_all_seeds(options, seeds / 8);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(RelaySimulation, G10_poison_amid_other_faults_is_quarantined_and_order_holds) {
  WorldOptions options;
  options.relays = 3;
  options.poison = true;
  expect_sound_for_all_seeds(options);
}

TEST(RelaySimulation, The_same_seed_plays_the_same_history) {
  WorldOptions options;
  options.seed = 42;
  RelayWorld first(options);
  RelayWorld second(options);
  EXPECT_EQ(first.play(), second.play());
  EXPECT_EQ(first.history(), second.history());
}

}  // namespace
}  // namespace postrider::simulation
