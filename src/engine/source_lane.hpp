#pragma once
/// \file
/// One thread that owns a source of tasks: opens it when told, waits for tickets, acknowledges, and
/// closes it in the end.

#include <cstddef>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include <postrider/task_source.hpp>

#include "base/mutex.hpp"
#include "core/worker_steps.hpp"

namespace postrider::engine {

/// What is reported is bounded by what the core lets happen: one connection at a time, whose
/// tickets are bounded by its prefetch; what was refused is merged.
///
/// Thread safety: all functions by the coordinator only; `reported` is called by the lane's thread.
class SourceLane {
 public:
  /// `reported` wakes the coordinator. Ownership: borrows the source, which must outlive the lane.
  SourceLane(TaskSource& source, std::function<void()> reported);
  ~SourceLane();
  SourceLane(const SourceLane&) = delete;
  SourceLane& operator=(const SourceLane&) = delete;

  /// Requires: none is open or being opened, as far as was reported.
  void open(std::size_t prefetch);
  /// Without effect on a connection that is gone.
  void acknowledge(std::vector<TicketTag> tags);
  void cancel();
  void close();

  /// What has happened since the last call, in order.
  [[nodiscard]] std::vector<core::WorkerInput> take_reports();

  /// Acknowledges what it was told to, closes the source and ends the thread. Idempotent.
  ///
  /// Blocking: for a moment, or until a name resolution ends.
  void stop();

 private:
  struct Orders {
    std::optional<std::size_t> open;  // with this prefetch
    std::vector<TicketTag> acknowledge;
    bool cancel = false;
    bool close = false;
    bool stop = false;
  };

  template <class Change>
  void order(Change change);
  [[nodiscard]] Orders next_orders();
  void run();
  void obey(const Orders& orders);
  void connect(std::size_t prefetch);
  void poll();
  void lose(Error error);
  void report(core::WorkerInput input);
  void report(TicketBatch batch);

  TaskSource& source_;
  const std::function<void()> reported_;
  bool connected_ = false;  // of the lane's thread alone

  Mutex mutex_;
  Condition changed_;
  Orders orders_ POSTRIDER_GUARDED_BY(mutex_);
  bool has_orders_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool connecting_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool ended_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::vector<core::WorkerInput> reports_ POSTRIDER_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace postrider::engine
