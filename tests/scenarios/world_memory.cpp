#include <postrider/testing/memory_store.hpp>

#include "scenarios/world.hpp"

namespace postrider::scenarios {
namespace {

class MemoryStoreHarness final : public testing::StoreHarness {
 public:
  explicit MemoryStoreHarness(std::int32_t partitions)
      : database_(testing::make_memory_database(partitions)) {}
  std::unique_ptr<Store> open_store() override { return testing::make_memory_store(database_); }
  std::unique_ptr<Operations> open_operations() override {
    return testing::make_memory_operations(database_);
  }
  std::unique_ptr<Purger> open_purger() override { return testing::make_memory_purger(database_); }
  std::unique_ptr<Migrator> open_migrator() override { return nullptr; }

 private:
  std::shared_ptr<testing::MemoryDatabase> database_;
};

class MemoryDestination final : public testing::PublisherHarness {
 public:
  std::unique_ptr<Publisher> open_publisher() override {
    return testing::make_memory_publisher(journal_);
  }
  std::vector<testing::Received> received() override {
    std::vector<testing::Received> received;
    for (const auto& event : journal_->accepted()) {
      testing::Received one;
      one.event_id = event->id.value().to_string();
      received.push_back(std::move(one));
    }
    return received;
  }
  bool take_down() override { return false; }  // a scenario's destination has a switch of its own
  bool bring_up() override { return false; }

 private:
  std::shared_ptr<testing::Journal> journal_ = std::make_shared<testing::Journal>();
};

}  // namespace

std::unique_ptr<testing::StoreHarness> memory_store(std::int32_t partitions) {
  return std::make_unique<MemoryStoreHarness>(partitions);
}

std::unique_ptr<testing::PublisherHarness> memory_destination() {
  return std::make_unique<MemoryDestination>();
}

}  // namespace postrider::scenarios
