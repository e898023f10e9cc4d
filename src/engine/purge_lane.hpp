#pragma once
/// \file
/// One thread that deletes what is old, on a connection of its own, so that a slow delete delays
/// neither reading nor settling nor the renewal of leases.

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include <postrider/purger.hpp>
#include <postrider/result.hpp>

#include "base/bounded_queue.hpp"
#include "engine/publisher_lane.hpp"

namespace postrider::engine {

/// Thread safety: `send`, `answer` and `stop` by the coordinator only.
class PurgeLane {
 public:
  /// `patience` bounds a slice. `coordinator` is borrowed, must outlive the lane, and is woken by
  /// an answer.
  PurgeLane(std::unique_ptr<Purger> purger, milliseconds patience, LaneReports& coordinator);
  ~PurgeLane();
  PurgeLane(const PurgeLane&) = delete;
  PurgeLane& operator=(const PurgeLane&) = delete;

  /// Requires: the answer to the last one was taken.
  void send(PurgeRequest request);
  [[nodiscard]] std::optional<Result<PurgeSlice>> answer();
  /// Waits for the slice that is being deleted, and ends the thread. Idempotent.
  void stop();

 private:
  void run();

  const std::unique_ptr<Purger> purger_;
  const milliseconds patience_;
  LaneReports& coordinator_;
  BoundedQueue<PurgeRequest> requests_{1};
  BoundedQueue<Result<PurgeSlice>> answers_{1};
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace postrider::engine
