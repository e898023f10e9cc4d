#pragma once
/// \file
/// The seam between a worker and whatever runs its jobs: `JobRunner`. Threads of this process,
/// child processes, a command per job, or an HTTP endpoint.
///
/// Thread safety: any thread; `poll` from one at a time.

#include <cstddef>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/ids.hpp>
#include <postrider/job.hpp>
#include <postrider/result.hpp>

namespace postrider {

struct JobRunnerTraits {
  std::string_view name;  ///< "thread", "process", "exec", "http"
  std::size_t slots = 1;  ///< attempts that may run at once
  /// A crash of a job ends this process, too: nobody is left who could record it, and the death of
  /// the worker is noticed by its missing heartbeats.
  bool crash_kills_worker = false;
  bool can_kill = false;  ///< `kill` ends an attempt that does not stop
};

/// How one attempt ended.
struct RunnerReport {
  DispatchId dispatch_id;
  AttemptEnd end;
};

class JobRunner {
 public:
  virtual ~JobRunner() = default;

  [[nodiscard]] virtual JobRunnerTraits traits() const = 0;

  /// Can it run this job? Errors: `invalid_argument` when no handler is bound to the name.
  [[nodiscard]] virtual Result<void> check_job(std::string_view job) const = 0;

  /// Starts an attempt; how it ended comes out of `poll`, once.
  ///
  /// Blocking: never on the job. Requires: a free slot. Errors: none: what cannot be started ends.
  virtual void start(Task task) = 0;

  /// Asks a running attempt to stop: a stop token, or SIGTERM. Nothing when it has ended.
  virtual void request_stop(const DispatchId& dispatch) = 0;

  /// Ends a running attempt with all that it has started. Nothing without `can_kill`.
  virtual void kill(const DispatchId& dispatch) = 0;

  /// Waits for reports until there is one, `wake` was called, or the deadline has passed.
  [[nodiscard]] virtual std::vector<RunnerReport> poll(Deadline deadline) = 0;
  virtual void wake() noexcept = 0;

  /// Kills what still runs, where it can, and waits for the rest. Idempotent.
  virtual void close() = 0;
};

}  // namespace postrider
