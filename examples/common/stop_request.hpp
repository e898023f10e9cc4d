#pragma once
/// \file
/// SIGINT and SIGTERM as a question that a loop asks, without handlers and threads.

#include <csignal>
#include <ctime>

namespace examples {

/// Make one before any thread starts: the threads inherit that both signals are blocked.
class StopRequest {
 public:
  StopRequest() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals_, nullptr);
  }

  /// Whether one of them has come. Does not wait.
  [[nodiscard]] bool came() {
    const timespec now{};
    came_ = came_ || sigtimedwait(&signals_, nullptr, &now) > 0;
    return came_;
  }

 private:
  sigset_t signals_{};
  bool came_ = false;
};

}  // namespace examples
