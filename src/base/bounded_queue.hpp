#pragma once
#include <chrono>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/mutex.hpp"

namespace postrider {

/// A queue between threads whose producers know its bound: they never hold more than `capacity`
/// items open, so a push never waits, and a push over the bound is a defect.
///
/// Thread safety: any number of producers and consumers.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  void push(std::vector<T> items) {
    if (items.empty()) return;
    const MutexLock lock(mutex_);
    POSTRIDER_ASSERT(items_.size() + items.size() <= capacity_);
    for (auto& item : items)
      items_.push_back(std::move(item));
    ready_.notify_one();
  }

  /// Everything that is there; waits up to `patience` while there is nothing and `interrupt` was
  /// not called since the last pop.
  std::vector<T> pop_all(std::chrono::milliseconds patience) {
    const MutexLock lock(mutex_);
    if (items_.empty() && !interrupted_) ready_.wait_for(mutex_, patience);
    interrupted_ = false;
    std::vector<T> popped(std::make_move_iterator(items_.begin()),
                          std::make_move_iterator(items_.end()));
    items_.clear();
    return popped;
  }

  /// Ends a running wait, or the next one before it begins.
  void interrupt() {
    const MutexLock lock(mutex_);
    interrupted_ = true;
    ready_.notify_all();
  }

 private:
  const std::size_t capacity_;
  Mutex mutex_;
  Condition ready_;
  std::deque<T> items_ POSTRIDER_GUARDED_BY(mutex_);
  bool interrupted_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

}  // namespace postrider
