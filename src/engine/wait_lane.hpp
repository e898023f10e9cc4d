#pragma once
/// \file
/// One thread that waits in the database for work, so that a job starts when it is written and not
/// when somebody looks.

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/job_store.hpp>

#include "base/mutex.hpp"

namespace postrider::engine {

/// Thread safety: `take_woken` and `stop` by the coordinator only; `woken` is called by the lane's
/// own thread.
class WaitLane {
 public:
  /// After an error it waits `pause`, and the coordinator's own polling stands in.
  /// Ownership: borrows the store, which must outlive the lane.
  WaitLane(JobStore& store, std::vector<std::string> queues, milliseconds pause,
           std::function<void()> woken);
  ~WaitLane();
  WaitLane(const WaitLane&) = delete;
  WaitLane& operator=(const WaitLane&) = delete;

  /// Whether something may have become due since the last call.
  [[nodiscard]] bool take_woken() noexcept { return woken_.exchange(false); }
  /// Ends the wait and the thread. Idempotent.
  void stop();

 private:
  void run();
  [[nodiscard]] bool stopping();
  void pause();

  JobStore& store_;
  const std::vector<std::string> queues_;
  const milliseconds pause_;
  const std::function<void()> tell_;
  std::atomic<bool> woken_ = false;
  Mutex mutex_;
  Condition stopped_;
  bool stopping_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace postrider::engine
