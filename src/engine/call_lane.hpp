#pragma once
/// \file
/// One thread that makes blocking calls of one connection, one after the other, so that the
/// coordinator decides, and renews leases, while the database works.

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "base/bounded_queue.hpp"
#include "core/relay_steps.hpp"

namespace postrider::engine {

/// Thread safety: one thread at a time; calls and `answered` are made by the lane's own.
class CallLane {
 public:
  /// Makes a call and turns its result into what the core is told. What it uses is used by nobody
  /// else while the call is open.
  using Call = std::function<core::Input()>;

  /// `answered` wakes the coordinator.
  explicit CallLane(std::function<void()> answered);
  ~CallLane();
  CallLane(const CallLane&) = delete;
  CallLane& operator=(const CallLane&) = delete;

  /// Requires: no call is open.
  void ask(Call call);
  /// A call was asked for, and its answer has not been taken.
  [[nodiscard]] bool open() const noexcept { return open_; }
  [[nodiscard]] std::optional<core::Input> take_answer();
  /// Waits for a call that is being made, and ends the thread. Idempotent.
  void stop();

 private:
  void run();

  const std::function<void()> answered_;
  BoundedQueue<Call> asked_{1};
  BoundedQueue<core::Input> answers_{1};
  bool open_ = false;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace postrider::engine
