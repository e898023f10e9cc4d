#pragma once
/// \file
/// The worker: takes jobs of its queues from a database, or by tasks that a broker hands out, runs
/// them, and records how they ended.
///
/// The decisions are those of src/core, driven here by one coordinating thread. Beside it stand
/// threads for what blocks: taking and recording, heartbeats, waiting for work, the runner, each of
/// the first three with a connection of its own, so that a long take never makes a live worker look
/// dead. Attempts have a fourth connection for what they ask while they run. Where the store lets
/// several connections write at once, recording has one more beside taking; a source of tasks has
/// one more, too, beside its own to the broker.
///
/// Ownership: a worker owns its stores, its runner and its source; clock, random source and
///   observer are borrowed and must outlive it.
/// Thread safety: `request_stop` from any thread; everything else from one thread at a time.

#include <functional>
#include <memory>

#include <postrider/attempt.hpp>
#include <postrider/clock.hpp>
#include <postrider/job_runner.hpp>
#include <postrider/job_store.hpp>
#include <postrider/observer.hpp>
#include <postrider/result.hpp>
#include <postrider/task_source.hpp>
#include <postrider/worker_values.hpp>

namespace postrider {

/// Makes a connection to the database; called four to six times, all before the first thread is
/// started.
using JobStoreFactory = std::function<std::unique_ptr<JobStore>()>;

/// Makes what runs the jobs; called once, before the worker starts a thread, so that it may fork.
/// The desk is for attempts of handlers in this process, and outlives the runner.
using JobRunnerFactory = std::function<Result<std::unique_ptr<JobRunner>>(AttemptDesk& desk)>;

class Worker {
 public:
  /// Nothing is connected before `run`. What is wrong with the options or the runner is an error of
  /// `run`. `source` is for jobs whose route hands them to a broker; a worker has queues, or a
  /// source, or both.
  Worker(const JobStoreFactory& stores, const JobRunnerFactory& runner, WorkerOptions options,
         const Clock& clock, Random& random, Observer& observer,
         const TaskSourceFactory& source = {});
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Works until `request_stop`, and then as long as a stop takes. Survives outages of the
  /// database and of the broker. Starts of workers on this host whose process is gone are declared
  /// dead first, so that a restart finds the jobs of its predecessor at once.
  ///
  /// A stop takes nothing more and waits `grace` for what runs; asks it to stop and waits
  /// `hard_grace`; kills the rest, where the runner can, and gives it back: due at once, and no
  /// attempt is used. What a runner without `can_kill` cannot end goes on until it ends by itself;
  /// `close` waits for it.
  /// Requires: called once.
  /// Errors: only what a person has to mend (`Disposition::stop`): options, handlers, schema,
  ///   credentials, rights.
  Result<WorkerReport> run();

  /// The first call begins the stop above, the second goes on to the stop request at once; more
  /// change nothing. Before `run` it makes that return at once.
  void request_stop() noexcept;

  /// Ends the runner. Idempotent; the destructor does it too.
  ///
  /// Blocking: until every handler that was left running has ended.
  void close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace postrider
