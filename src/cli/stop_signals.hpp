#pragma once
#include <functional>
#include <memory>

#include <postrider/clock.hpp>

namespace postrider::cli {

/// SIGTERM and SIGINT as a request to stop: the first calls `request`, a second one that comes a
/// second or more later calls `hurry`, and without one, or a third, ends the process at once.
///
/// Made before any other thread, so that all of them inherit the blocked signals.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// What the first signal does, and the second; called at once for those that have come already.
  /// Both are called from another thread and must stay valid until `forget`.
  void on_stop(std::function<void()> request, std::function<void()> hurry = {});
  /// After this the request is not called any more.
  void forget();

  /// Waits for `patience` or for a signal; tells whether one has come.
  bool wait_for(milliseconds patience);

 private:
  class Watcher;
  std::unique_ptr<Watcher> watcher_;
};

}  // namespace postrider::cli
