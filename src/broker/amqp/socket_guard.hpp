#pragma once
/// \file
/// Lets one thread break a call of rabbitmq-c in which another one is stuck.
///
/// Writing a message to a broker that does not read blocks without end in rabbitmq-c 0.11; a send
/// timeout on the socket does not help (its issue 519). Shutting the socket down does: the call
/// returns with an error. It can go when the library has a deadline for publishing; the test
/// AmqpFaults.F81_… tells.

#include <sys/socket.h>

#include "base/mutex.hpp"

namespace postrider::amqp {

/// One for each driver thread. Thread safety: any thread.
class SocketGuard {
 public:
  /// `descriptor` stays open until `disarm`.
  void arm(int descriptor) {
    const MutexLock lock(mutex_);
    descriptor_ = descriptor;
    if (for_good_) shutdown(descriptor_, SHUT_RDWR);
  }
  void disarm() {
    const MutexLock lock(mutex_);
    descriptor_ = -1;
  }
  /// Breaks the present connection, if there is one.
  void cut() {
    const MutexLock lock(mutex_);
    if (descriptor_ >= 0) shutdown(descriptor_, SHUT_RDWR);
  }
  /// Breaks the present connection and every later one.
  void cut_for_good() {
    const MutexLock lock(mutex_);
    for_good_ = true;
    if (descriptor_ >= 0) shutdown(descriptor_, SHUT_RDWR);
  }

 private:
  Mutex mutex_;
  int descriptor_ POSTRIDER_GUARDED_BY(mutex_) = -1;
  bool for_good_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

}  // namespace postrider::amqp
