#pragma once
/// \file
/// One thread that waits for attempts to end.

#include <atomic>
#include <cstddef>
#include <thread>

#include <postrider/job_runner.hpp>

#include "base/bounded_queue.hpp"

namespace postrider::engine {

/// Every attempt has one end, so there are never more reports than slots.
using RunnerReports = BoundedQueue<RunnerReport>;

/// Thread safety: `stop` by the coordinator only.
class RunnerLane {
 public:
  /// Ownership: borrows both, which must outlive the lane.
  RunnerLane(JobRunner& runner, RunnerReports& reports);
  ~RunnerLane();
  RunnerLane(const RunnerLane&) = delete;
  RunnerLane& operator=(const RunnerLane&) = delete;

  /// Ends the thread and leaves the runner as it is. Idempotent.
  void stop();

 private:
  void run();

  JobRunner& runner_;
  RunnerReports& reports_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace postrider::engine
