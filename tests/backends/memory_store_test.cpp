#include <postrider/testing/memory_store.hpp>
#include <postrider/testing/store_conformance.hpp>

namespace postrider::testing {
namespace {

class MemoryStoreHarness final : public StoreHarness {
 public:
  explicit MemoryStoreHarness(std::int32_t partitions)
      : database_(make_memory_database(partitions)) {}

  std::unique_ptr<Store> open_store() override { return make_memory_store(database_); }
  std::unique_ptr<Purger> open_purger() override { return make_memory_purger(database_); }
  std::unique_ptr<Operations> open_operations() override {
    return make_memory_operations(database_);
  }
  std::unique_ptr<Migrator> open_migrator() override { return nullptr; }

  bool plant_malformed_event() override {
    testing::plant_malformed_event(*database_, "its headers cannot be read");
    return true;
  }

  std::optional<std::vector<AuditedChange>> audit() override {
    std::vector<AuditedChange> changes;
    for (const auto& entry : audit_of(*database_))
      changes.push_back({entry.action, entry.who});
    return changes;
  }

 private:
  std::shared_ptr<MemoryDatabase> database_;
};

StoreCase with_partitions(const char* name, std::int32_t partitions) {
  return {name, [partitions] { return std::make_unique<MemoryStoreHarness>(partitions); }};
}

INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance,
                         ::testing::Values(with_partitions("one_partition", 1),
                                           with_partitions("many_partitions", 64)),
                         case_name);

}  // namespace
}  // namespace postrider::testing
