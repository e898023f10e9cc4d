// What people may do with jobs in memory, against the suite.

#include <postrider/testing/memory_store.hpp>

#include "conformance/job_operations.hpp"
#include "store/memory/memory_database.hpp"

namespace postrider::testing {
namespace {

class MemoryJobOperationsHarness final : public JobOperationsHarness {
 public:
  std::unique_ptr<Store> open_store() override { return make_memory_store(database_); }
  std::unique_ptr<JobStore> open_job_store() override { return make_memory_job_store(database_); }
  std::unique_ptr<Operations> open_operations() override {
    return make_memory_operations(database_);
  }
  std::unique_ptr<JobOperations> open_job_operations() override {
    return make_memory_job_operations(database_);
  }

  std::unique_ptr<Purger> open_purger() override { return make_memory_purger(database_); }

  std::int64_t stored_failures() override {
    const MutexLock lock(database_->mutex);
    std::int64_t stored = 0;
    for (const auto& [id, job] : database_->tables.jobs())
      stored += static_cast<std::int64_t>(job.failures.size());
    return stored;
  }

  std::vector<AuditedJobChange> audit() override {
    std::vector<AuditedJobChange> changes;
    for (const auto& entry : audit_of(*database_))
      changes.push_back({entry.action, entry.who.name, entry.who.reason});
    return changes;
  }

 private:
  std::shared_ptr<MemoryDatabase> database_ = make_memory_database();
};

INSTANTIATE_TEST_SUITE_P(Memory, JobOperationsConformance,
                         ::testing::Values(JobOperationsCase{
                             "one_partition",
                             [] { return std::make_unique<MemoryJobOperationsHarness>(); }}),
                         job_operations_case_name);

}  // namespace
}  // namespace postrider::testing
