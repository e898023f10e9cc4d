#pragma once
/// \file
/// Where a scenario is played: a store and a kind of destination.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <postrider/relay.hpp>
#include <postrider/testing/manual_clock.hpp>
#include <postrider/testing/memory_publisher.hpp>
#include <postrider/testing/publisher_conformance.hpp>
#include <postrider/testing/store_conformance.hpp>

namespace postrider::scenarios {

/// Makes a fresh store or destination for one scenario.
using StoreMaker = std::function<std::unique_ptr<testing::StoreHarness>()>;
using DestinationMaker = std::function<std::unique_ptr<testing::PublisherHarness>()>;

struct World {
  std::string name;
  StoreMaker make_store;
  DestinationMaker make_destination;
  /// Fails or skips the running test when a server is missing, and then returns false.
  std::function<bool()> has_its_servers = [] { return true; };
};

/// The worlds of this test program.
std::vector<World> all_worlds();

// The parts that worlds are made of.
std::unique_ptr<testing::StoreHarness> memory_store(std::int32_t partitions);
std::unique_ptr<testing::StoreHarness> postgres_store();
std::unique_ptr<testing::PublisherHarness> memory_destination();
std::unique_ptr<testing::PublisherHarness> file_destination();
std::unique_ptr<testing::PublisherHarness> rabbitmq_destination();

/// A destination that scenarios can take away, and whose attempts they can make fail.
class Destination {
 public:
  explicit Destination(std::unique_ptr<testing::PublisherHarness> harness);
  ~Destination();

  /// A publisher for one more relay. Attempts are counted over all publishers of the destination.
  std::unique_ptr<Publisher> open();
  void set_down(bool down);
  void fail_attempt(std::uint64_t attempt, testing::Fault fault);
  void fail_event(const std::string& event_id, testing::Fault fault);
  /// Whoever sends this event calls `die` and does not come back.
  void make_deadly(const std::string& event_id, std::function<void()> die);
  void heal();
  std::vector<std::string> received_ids();

 private:
  struct Faults;
  class FaultyPublisher;
  std::unique_ptr<testing::PublisherHarness> harness_;
  std::shared_ptr<Faults> faults_;
};

}  // namespace postrider::scenarios
