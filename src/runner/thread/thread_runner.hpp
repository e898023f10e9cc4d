#pragma once
#include <cstddef>
#include <deque>
#include <map>
#include <stop_token>
#include <thread>
#include <vector>

#include <postrider/attempt.hpp>
#include <postrider/handlers.hpp>
#include <postrider/job_runner.hpp>

#include "base/bounded_queue.hpp"
#include "base/mutex.hpp"

namespace postrider {

/// A pool of threads, each of which runs one attempt after the other.
class ThreadRunner final : public JobRunner {
 public:
  /// Requires: at least one thread. Ownership: borrows the desk.
  ThreadRunner(Handlers handlers, std::size_t threads, AttemptDesk& desk);
  ~ThreadRunner() override;

  [[nodiscard]] JobRunnerTraits traits() const override;
  [[nodiscard]] Result<void> check_job(std::string_view job) const override;
  void start(Task task) override;
  void request_stop(const DispatchId& dispatch) override;
  void kill(const DispatchId& dispatch) override;
  [[nodiscard]] std::vector<RunnerReport> poll(Deadline deadline) override;
  void wake() noexcept override;
  void close() override;

 private:
  struct Running {
    Task task;
    std::stop_source stop;
  };

  void run();
  // Waits for the next attempt; null when the runner closes.
  [[nodiscard]] Running* next();
  void end(DispatchId dispatch, JobOutcome outcome);
  void rouse() POSTRIDER_REQUIRES(mutex_);

  const Handlers handlers_;
  const std::size_t slots_;
  AttemptDesk& desk_;
  Mutex mutex_;
  Condition started_;
  // Started and not ended; nodes stay where they are while a thread works on them.
  std::map<DispatchId, Running> running_ POSTRIDER_GUARDED_BY(mutex_);
  std::deque<Running*> waiting_ POSTRIDER_GUARDED_BY(mutex_);  // for a thread, oldest first
  std::size_t idle_ POSTRIDER_GUARDED_BY(mutex_) = 0;          // threads that wait
  bool rousing_ POSTRIDER_GUARDED_BY(mutex_) = false;  // one of them, which is not awake yet
  bool closing_ POSTRIDER_GUARDED_BY(mutex_) = false;
  BoundedQueue<RunnerReport> reports_;
  std::vector<std::thread> threads_;
};

}  // namespace postrider
