// Schedules in memory, against the suite.

#include <postrider/testing/memory_store.hpp>
#include <postrider/testing/schedule_store_conformance.hpp>

#include "store/memory/memory_database.hpp"

namespace postrider::testing {
namespace {

class MemoryScheduleHarness final : public ScheduleStoreHarness {
 public:
  std::unique_ptr<ScheduleStore> open_schedule_store() override {
    return make_memory_schedule_store(database_);
  }
  std::unique_ptr<Operations> open_operations() override {
    return make_memory_operations(database_);
  }

  std::vector<AuditedScheduleChange> audit() override {
    std::vector<AuditedScheduleChange> changes;
    for (const auto& entry : audit_of(*database_))
      changes.push_back({entry.action, entry.subject, entry.who.name, entry.who.reason});
    return changes;
  }

  std::optional<std::int64_t> slots() override {
    const MutexLock lock(database_->mutex);
    std::int64_t slots = 0;
    for (const auto& [name, row] : database_->tables.schedules())
      slots += static_cast<std::int64_t>(row.slots.size());
    return slots;
  }

 private:
  std::shared_ptr<MemoryDatabase> database_ = make_memory_database();
};

INSTANTIATE_TEST_SUITE_P(Memory, ScheduleStoreConformance,
                         ::testing::Values(ScheduleStoreCase{
                             "one_partition",
                             [] { return std::make_unique<MemoryScheduleHarness>(); }}),
                         schedule_case_name);

}  // namespace
}  // namespace postrider::testing
