#pragma once
/// \file
/// One thread that makes the calls of one store, one after the other, so that its coordinator
/// decides about one batch while the database works on another.

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include <postrider/store.hpp>

#include "base/bounded_queue.hpp"
#include "core/relay_steps.hpp"

namespace postrider::engine {

/// Thread safety: one thread at a time; `answered` is called by the lane's own.
class StoreLane {
 public:
  /// Makes a call and turns its result into what the core is told.
  using Call = std::function<core::Input(Store&)>;

  /// `store` is borrowed, must outlive the lane, and is used by nobody else while a call is open.
  StoreLane(Store& store, std::function<void()> answered);
  ~StoreLane();
  StoreLane(const StoreLane&) = delete;
  StoreLane& operator=(const StoreLane&) = delete;

  /// Requires: no call is open.
  void ask(Call call);
  /// A call was asked for, and its answer has not been taken.
  [[nodiscard]] bool open() const noexcept { return open_; }
  [[nodiscard]] std::optional<core::Input> take_answer();
  /// Waits for a call that is being made, and ends the thread. Idempotent.
  void stop();

 private:
  void run();

  Store& store_;
  const std::function<void()> answered_;
  BoundedQueue<Call> asked_{1};
  BoundedQueue<core::Input> answers_{1};
  bool open_ = false;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace postrider::engine
