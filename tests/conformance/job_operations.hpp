#pragma once
/// \file
/// The suite that defines what people may do with jobs, the same for every store.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/job_operations.hpp>
#include <postrider/job_store.hpp>
#include <postrider/purger.hpp>
#include <postrider/store.hpp>
#include <postrider/testing/manual_clock.hpp>

namespace postrider::testing {

/// A change by a person, as the audit has it.
struct AuditedJobChange {
  std::string action;
  std::string who;
  std::string reason;
  friend bool operator==(const AuditedJobChange&, const AuditedJobChange&) = default;
};

/// A fresh, migrated, empty database that lives as long as this object.
class JobOperationsHarness {
 public:
  virtual ~JobOperationsHarness() = default;
  virtual std::unique_ptr<Store> open_store() = 0;
  virtual std::unique_ptr<JobStore> open_job_store() = 0;
  virtual std::unique_ptr<Operations> open_operations() = 0;
  virtual std::unique_ptr<JobOperations> open_job_operations() = 0;
  virtual std::unique_ptr<Purger> open_purger() = 0;
  /// Rows of the history of failures, of whatever job.
  virtual std::int64_t stored_failures() = 0;
  /// Oldest first.
  virtual std::vector<AuditedJobChange> audit() = 0;
};

struct JobOperationsCase {
  std::string name;
  std::function<std::unique_ptr<JobOperationsHarness>()> make;
};

/// What GoogleTest shows of a case.
inline void PrintTo(const JobOperationsCase& given, std::ostream* out) {
  *out << given.name;
}

[[nodiscard]] inline std::string job_operations_case_name(
    const ::testing::TestParamInfo<JobOperationsCase>& info) {
  return info.param.name;
}

class JobOperationsConformance : public ::testing::TestWithParam<JobOperationsCase> {
 protected:
  using RequestChange = std::function<void(EnqueueRequest&)>;

  void SetUp() override;
  void TearDown() override;

  /// The job "ship" in the queue "shipping", due at once, with the retry delays 1 s and 5 s.
  [[nodiscard]] static EnqueueRequest request(const RequestChange& change = {});
  DeliveryId enqueue(const RequestChange& change = {});
  [[nodiscard]] Result<EnqueueAnswer> try_enqueue(const EnqueueRequest& request);

  WorkerId start_worker();
  HeartbeatAnswer beat(WorkerState state, const std::vector<DispatchId>& running = {});
  std::vector<Task> take(std::size_t at_most = 100, const std::string& queue = "shipping");
  /// The one that there is.
  Task take_one();
  RecordAnswer record(const Task& task, DeliveryStatus status,
                      const std::function<void(JobUpdate&)>& change = {});

  JobAnswer cancel(const DeliveryId& id);
  JobAnswer reschedule(const DeliveryId& id, const DueTime& due);
  [[nodiscard]] JobDetail show(const DeliveryId& id);
  [[nodiscard]] JobCounts counts(const std::string& job = "ship");
  [[nodiscard]] std::int64_t events();

  // job_hooks.cpp
  /// Events that no route has seen: those of hooks, as enqueued ones are routed.
  std::vector<ClaimedEvent> unrouted();
  std::vector<std::string> unrouted_types();
  /// Takes the one job that waits and fails it; its next attempt is due at once.
  RecordAnswer fail_once();

  [[nodiscard]] Timestamp now() const { return clock_.wall(); }

  ManualClock clock_;
  std::unique_ptr<JobOperationsHarness> harness_;
  std::unique_ptr<JobStore> jobs_;
  std::unique_ptr<JobOperations> operations_;
  WorkerInfo worker_;
};

}  // namespace postrider::testing
