#pragma once
/// \file
/// One thread that makes blocking calls of one connection, one after the other, so that the
/// coordinator decides, and renews leases, while the database works.

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/bounded_queue.hpp"

namespace postrider::engine {

/// `Answer` is what the core is told: the input of a relay's or of a worker's.
///
/// Thread safety: one thread at a time; calls and `answered` are made by the lane's own.
template <class Answer>
class CallLane {
 public:
  /// Makes a call and turns its result into what the core is told. What it uses is used by nobody
  /// else while the call is open.
  using Call = std::function<Answer()>;

  /// `answered` wakes the coordinator.
  explicit CallLane(std::function<void()> answered)
      : answered_(std::move(answered)), thread_([this] { run(); }) {}
  ~CallLane() { stop(); }
  CallLane(const CallLane&) = delete;
  CallLane& operator=(const CallLane&) = delete;

  /// Requires: no call is open.
  void ask(Call call) {
    POSTRIDER_ASSERT(!open_);
    open_ = true;
    asked_.push(list_of(std::move(call)));
  }
  /// A call was asked for, and its answer has not been taken.
  [[nodiscard]] bool open() const noexcept { return open_; }
  [[nodiscard]] std::optional<Answer> take_answer() {
    if (!open_) return std::nullopt;
    auto answers = answers_.pop_all(std::chrono::milliseconds(0));
    if (answers.empty()) return std::nullopt;
    open_ = false;
    return std::move(answers.front());
  }
  /// Waits for a call that is being made, and ends the thread. Idempotent.
  void stop() {
    stopping_ = true;
    asked_.interrupt();
    if (thread_.joinable()) thread_.join();
  }

 private:
  // Nothing has to happen before this; an `ask` and a `stop` end the wait.
  static constexpr std::chrono::milliseconds longest_idle{60'000};

  template <class T>
  static std::vector<T> list_of(T item) {
    std::vector<T> list;
    list.push_back(std::move(item));
    return list;
  }

  void run() {
    while (!stopping_) {
      for (const auto& call : asked_.pop_all(longest_idle)) {
        answers_.push(list_of(call()));
        answered_();
      }
    }
  }

  const std::function<void()> answered_;
  BoundedQueue<Call> asked_{1};
  BoundedQueue<Answer> answers_{1};
  bool open_ = false;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace postrider::engine
