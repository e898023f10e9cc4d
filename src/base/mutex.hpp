#pragma once
/// \file
/// A mutex that clang's thread-safety analysis understands (it does not see through std::mutex).

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define POSTRIDER_THREAD(attribute) __attribute__((attribute))
#else
#define POSTRIDER_THREAD(attribute)
#endif
#define POSTRIDER_GUARDED_BY(mutex) POSTRIDER_THREAD(guarded_by(mutex))
#define POSTRIDER_REQUIRES(mutex) POSTRIDER_THREAD(requires_capability(mutex))

namespace postrider {

class POSTRIDER_THREAD(capability("mutex")) Mutex {
 public:
  void lock() POSTRIDER_THREAD(acquire_capability()) { mutex_.lock(); }
  void unlock() POSTRIDER_THREAD(release_capability()) { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

class POSTRIDER_THREAD(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) POSTRIDER_THREAD(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() POSTRIDER_THREAD(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Waits are called with the mutex held and return with it held.
class Condition {
 public:
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }
  void wait(Mutex& mutex) POSTRIDER_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  void wait_for(Mutex& mutex, std::chrono::milliseconds patience) POSTRIDER_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    condition_.wait_for(lock, patience);
    lock.release();
  }

 private:
  std::condition_variable condition_;
};

}  // namespace postrider
