#include "runner/thread/thread_runner.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <postrider/runner/thread.hpp>

#include "base/assert.hpp"

namespace postrider {
namespace {

Error unusable(std::string message) {
  return {ErrorCode::config_invalid, Disposition::stop, std::move(message), "worker", ""};
}

std::string in_one_line(const std::vector<std::string>& faults) {
  std::string line;
  for (const auto& fault : faults)
    line += (line.empty() ? "" : " ") + fault;
  return line;
}

}  // namespace

Result<std::unique_ptr<JobRunner>> make_thread_runner(Handlers handlers, std::size_t threads,
                                                      AttemptDesk& desk) {
  POSTRIDER_ASSERT(threads >= 1 && threads <= most_runner_threads);
  if (const auto faults = handlers.validate(); !faults.empty()) {
    return unusable("the handlers cannot be used: " + in_one_line(faults));
  }
  if (handlers.jobs().empty()) {
    return unusable("no handler is bound. Bind one for each job of the queues of this worker.");
  }
  return std::unique_ptr<JobRunner>(
      std::make_unique<ThreadRunner>(std::move(handlers), threads, desk));
}

ThreadRunner::ThreadRunner(Handlers handlers, std::size_t threads, AttemptDesk& desk)
    : handlers_(std::move(handlers)), slots_(threads), desk_(desk), reports_(threads) {
  threads_.reserve(threads);
  for (std::size_t i = 0; i < threads; ++i)
    threads_.emplace_back([this] { run(); });
}

ThreadRunner::~ThreadRunner() {
  close();
}

JobRunnerTraits ThreadRunner::traits() const {
  JobRunnerTraits traits;
  traits.name = "thread";
  traits.slots = slots_;
  traits.crash_kills_worker = true;
  return traits;
}

Result<void> ThreadRunner::check_job(std::string_view job) const {
  return handlers_.check_job(job);
}

void ThreadRunner::start(Task task) {
  const auto dispatch = task.dispatch_id;
  const MutexLock lock(mutex_);
  POSTRIDER_ASSERT(!closing_ && running_.size() < slots_);
  const auto [place, is_new] = running_.try_emplace(dispatch, Running{std::move(task), {}});
  POSTRIDER_ASSERT(is_new);
  waiting_.push_back(&place->second);
  rouse();
}

// One thread after the other: whoever is awake rouses the next while something waits. A handler
// that is done before the next thread is awake takes what that one would have had; to wake a thread
// for each job costs more than an empty handler.
void ThreadRunner::rouse() {
  if (rousing_ || idle_ == 0 || waiting_.empty()) return;
  rousing_ = true;
  started_.notify_one();
}

void ThreadRunner::request_stop(const DispatchId& dispatch) {
  std::optional<std::stop_source> stop;
  {
    const MutexLock lock(mutex_);
    const auto found = running_.find(dispatch);
    if (found == running_.end()) return;
    stop = found->second.stop;
  }
  stop->request_stop();  // runs the handler's own stop callbacks, so without the lock
}

void ThreadRunner::kill(const DispatchId& /*dispatch*/) {}

std::vector<RunnerReport> ThreadRunner::poll(Deadline deadline) {
  return reports_.pop_all(deadline.remaining());
}

void ThreadRunner::wake() noexcept {
  reports_.interrupt();
}

void ThreadRunner::close() {
  std::vector<std::stop_source> stops;
  {
    const MutexLock lock(mutex_);
    closing_ = true;
    for (const auto& [dispatch, running] : running_)
      stops.push_back(running.stop);
    started_.notify_all();
  }
  for (auto& stop : stops)
    stop.request_stop();
  for (auto& thread : threads_)
    if (thread.joinable()) thread.join();
}

void ThreadRunner::run() {
  while (auto* const running = next()) {
    Attempt attempt(running->task, desk_, running->stop.get_token());
    auto outcome = handlers_.run(running->task, attempt);
    end(running->task.dispatch_id, std::move(outcome));
  }
}

ThreadRunner::Running* ThreadRunner::next() {
  const MutexLock lock(mutex_);
  while (waiting_.empty() && !closing_) {
    ++idle_;
    started_.wait(mutex_);
    --idle_;
    rousing_ = false;
  }
  if (waiting_.empty() || closing_) return nullptr;
  auto* const next = waiting_.front();
  waiting_.pop_front();
  rouse();
  return next;
}

// The slot is free before anybody can hear of it.
void ThreadRunner::end(DispatchId dispatch, JobOutcome outcome) {
  std::vector<RunnerReport> reports;
  reports.push_back({dispatch, std::move(outcome)});
  {
    const MutexLock lock(mutex_);
    running_.erase(dispatch);
  }
  reports_.push(std::move(reports));
}

}  // namespace postrider
