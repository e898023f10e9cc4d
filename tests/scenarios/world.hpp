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

using StoreMaker = std::function<std::unique_ptr<testing::StoreHarness>()>;
using DestinationMaker = std::function<std::unique_ptr<testing::PublisherHarness>()>;

struct World {
  std::string name;
  StoreMaker make_store;
  DestinationMaker make_destination;
};

struct NamedStore {
  std::string name;
  StoreMaker make;
};
struct NamedDestination {
  std::string name;
  DestinationMaker make;
};

/// Each backend's part of the world; empty where it is not in this build.
std::vector<NamedStore> memory_stores();
std::vector<NamedStore> sqlite_stores();
std::vector<NamedStore> postgres_stores();
NamedDestination memory_destination();
std::vector<NamedDestination> file_destinations();
std::vector<NamedDestination> rabbitmq_destinations();

/// Every store with the memory destination, and every other destination with one durable store and
/// with the memory store.
std::vector<World> all_worlds();

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
  void heal();
  std::vector<std::string> received_ids();

 private:
  struct Faults;
  class FaultyPublisher;
  std::unique_ptr<testing::PublisherHarness> harness_;
  std::shared_ptr<Faults> faults_;
};

}  // namespace postrider::scenarios
