#pragma once
/// \file
/// A small deterministic world for the relay's core: the object code of the product, a store in
/// memory, destinations that fail in every way they can, relays that die, freeze and take over.
///
/// One thread, one seed, one order of events. A hostile phase is followed by a healed one, in which
/// everything that may arrive has to.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <postrider/operations.hpp>
#include <postrider/store.hpp>
#include <postrider/testing/manual_clock.hpp>
#include <postrider/testing/memory_store.hpp>

#include "core/relay_core.hpp"

namespace postrider::simulation {

struct WorldOptions {
  std::uint64_t seed = 1;
  std::int32_t partitions = 4;
  std::size_t relays = 2;
  std::size_t routes = 2;
  std::size_t aggregates = 5;
  std::size_t steps = 400;
  bool continuous = true;
  OnFailed on_failed = OnFailed::halt;
  bool faults = true;   ///< false: nothing fails but what is asked for below
  bool poison = false;  ///< one event kills whoever sends it
  bool jobs = false;    ///< every event makes a job besides, which nobody takes
};

class RelayWorld {
 public:
  explicit RelayWorld(WorldOptions options);
  ~RelayWorld();

  /// Plays the hostile phase and the healed one. Returns what was violated, empty when nothing was.
  std::vector<std::string> play();

  /// Everything that happened, a line each, for the person who has to understand a failure.
  [[nodiscard]] const std::vector<std::string>& history() const { return history_; }

  /// How many events are gone because they were delivered and old.
  [[nodiscard]] std::int64_t purged() const { return purged_; }

 private:
  struct InFlight {
    std::size_t route = 0;
    Message message;
  };
  struct LateCopy {
    std::size_t route = 0;
    Seq seq;
  };
  struct RelayProcess {
    std::string name;
    std::unique_ptr<Random> random;
    std::unique_ptr<IdGenerator> ids;
    std::unique_ptr<Store> store;
    std::unique_ptr<core::RelayCore> core;
    std::deque<core::Input> inputs;  // answers on their way
    std::vector<InFlight> in_flight;
    bool idle = true;  // between passes
  };

  [[nodiscard]] std::uint64_t below(std::uint64_t bound);
  [[nodiscard]] bool chance(unsigned percent) { return below(100) < percent; }
  void record(std::string line);

  void start(RelayProcess& relay);
  [[nodiscard]] std::vector<Route> all_routes() const;
  /// How many jobs each event has.
  [[nodiscard]] std::map<std::int64_t, std::size_t> count_jobs() const;
  void check_jobs();
  void hostile_step();
  void healed_step();
  void peaceful_step();
  void write_events();
  void let_relay_act(RelayProcess& relay);
  void take_step(RelayProcess& relay, core::Input input);
  void purge(RelayProcess& relay, PurgeRequest request);
  /// False when the relay died of it.
  [[nodiscard]] bool execute(RelayProcess& relay, core::Action& action);
  [[nodiscard]] bool submit(RelayProcess& relay, core::action::Submit& submit);
  void die_of_poison(RelayProcess& relay);
  template <class Answer, class Call>
  void call_store(RelayProcess& relay, std::string_view what, Call&& call);
  void answer_one(RelayProcess& relay);
  void lose_connection(RelayProcess& relay, std::size_t route);
  void accept(std::size_t route, Seq seq);
  void arrive_late();
  void crash(RelayProcess& relay);
  [[nodiscard]] bool settled_down() const;
  void check_order();
  void check_all_arrived();
  void check_quarantine();

  const WorldOptions options_;
  testing::ManualClock clock_;
  std::unique_ptr<Random> random_;
  std::shared_ptr<testing::MemoryDatabase> database_;
  std::unique_ptr<Store> writer_;
  std::unique_ptr<Operations> operations_;
  std::unique_ptr<Purger> purger_;
  std::vector<Route> routes_;
  std::vector<RelayProcess> relays_;
  std::vector<bool> down_;
  bool hostile_ = true;
  std::map<std::int64_t, std::string> aggregate_of_;  // by seq
  std::int64_t last_seq_ = 0;
  std::int64_t purged_ = 0;
  std::int64_t poison_ = 0;                          // its seq
  int deaths_ = 0;                                   // of poison
  int deaths_alone_ = 0;                             // … while crashes were suspected
  std::vector<std::vector<std::int64_t>> accepted_;  // by route: seqs, repeats included
  std::vector<LateCopy> late_copies_;
  std::vector<std::string> history_;
  std::vector<std::string> violations_;
};

}  // namespace postrider::simulation
