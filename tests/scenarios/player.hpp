#pragma once
/// \file
/// Plays a scenario: turns each command into calls of the product and compares what it says.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <postrider/observer.hpp>
#include <postrider/operations.hpp>
#include <postrider/relay.hpp>

#include "scenarios/mortal_store.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/world.hpp"

namespace postrider::scenarios {

class Player {
 public:
  explicit Player(const World& world);
  ~Player();
  void play(const Scenario& scenario);

 private:
  using Words = std::vector<std::string>;

  void run(const Command& command);
  // setting up
  void set_option(const Words& words);
  void set_route(const Words& words);
  void add(const Words& words);
  void set_faults(const Words& words);
  void set_down(const Words& words, bool down);
  // acting
  void pass(const Words& words);
  void advance(const Words& words);
  void restart();
  void crash();
  void operate_dead(const Words& words);
  void operate_route(const Words& words);
  // expecting
  void expect_received(const Words& words);
  void expect_effects(const Words& words);
  void expect_count(const Words& words);

  Relay& relay(const std::string& name);
  Destination& destination(const std::string& route);
  Words labels_of(const std::vector<std::string>& event_ids) const;

  const World& world_;
  testing::ManualClock clock_;
  std::unique_ptr<Random> random_;
  std::unique_ptr<testing::StoreHarness> harness_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Operations> operations_;
  std::unique_ptr<Observer> observer_;
  RelayOptions options_;
  std::vector<Route> routes_;
  std::map<std::string, std::unique_ptr<Destination>> destinations_;
  std::map<std::string, std::unique_ptr<Relay>> relays_;
  Death death_ = std::make_shared<std::atomic<bool>>(false);  // of the relays that are there now
  std::map<std::string, EventId> ids_;                        // by label
  std::map<std::string, std::string> labels_;                 // by event id
  std::vector<std::string> order_;                            // labels in the order of writing
  std::string at_;  // file and line of the command, for failures
};

}  // namespace postrider::scenarios
