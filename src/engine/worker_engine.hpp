#pragma once
/// \file
/// The coordinator: the only caller of a worker's core and of its observer.

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <postrider/worker.hpp>

#include "core/worker_core.hpp"
#include "engine/attempt_desk.hpp"
#include "engine/call_lane.hpp"
#include "engine/runner_lane.hpp"
#include "engine/ticket_lanes.hpp"
#include "engine/wait_lane.hpp"
#include "engine/worker_identity.hpp"

namespace postrider::engine {

class WorkerEngine {
 public:
  WorkerEngine(const JobStoreFactory& stores, const JobRunnerFactory& runner, WorkerOptions options,
               const Clock& clock, Random& random, Observer& observer,
               const TaskSourceFactory& source);
  ~WorkerEngine();
  WorkerEngine(const WorkerEngine&) = delete;
  WorkerEngine& operator=(const WorkerEngine&) = delete;

  Result<WorkerReport> run();
  void request_stop() noexcept;
  void close();

 private:
  // What blocks, each on a thread of its own; there while the worker runs.
  struct Lanes {
    Lanes(JobRunner& runner, RunnerReports& reports);
    CallLane<core::WorkerInput> takes;
    std::optional<CallLane<core::WorkerInput>> records;  // else they take turns with the takes
    CallLane<core::WorkerInput> beats;
    std::optional<WaitLane> wait;        // with a queue to wait for
    std::optional<TicketLanes> tickets;  // with a source
    RunnerLane runner;
  };

  [[nodiscard]] std::optional<Error> fault() const;
  Result<void> prepare();
  Result<void> greet_database();
  Result<void> declare_dead_predecessors();
  Result<WorkerReport> work();
  void open_lanes();
  void await_inputs(milliseconds patience);
  void add_answers(std::vector<core::WorkerInput>& inputs);
  void add_stops(std::vector<core::WorkerInput>& inputs);
  void take_step(std::vector<core::WorkerInput> inputs);
  void execute(core::worker_action::Take& take);
  void execute(core::worker_action::Record& record);
  void execute(core::worker_action::Beat& beat);
  void execute(core::worker_action::Start& start);
  void execute(core::worker_action::RequestStop& stop);
  void execute(core::worker_action::Kill& kill);
  void execute(core::worker_action::Notify& notify);
  void execute(core::worker_action::Done& done);
  /// Everything else is about tickets.
  template <class Action>
  void execute(Action& action) {
    lanes_->tickets.value().execute(action);
  }
  [[nodiscard]] JobRunner& runner() const { return **runner_; }
  [[nodiscard]] WorkerInfo info_of_start();
  [[nodiscard]] milliseconds patience() const;
  [[nodiscard]] Deadline store_deadline() const;
  void note_store_failed(const Error& error, milliseconds wait);
  void note_store_recovered();

  const WorkerOptions options_;
  const Clock& clock_;
  Random& random_;
  Observer& observer_;
  const HostIdentity host_;
  IdGenerator ids_;
  const std::unique_ptr<JobStore> store_;
  const std::unique_ptr<JobStore> record_store_;  // where a take does not lock out a record
  const std::unique_ptr<JobStore> beat_store_;
  const std::unique_ptr<JobStore> wait_store_;
  const std::unique_ptr<TaskSource> source_;     // may be none
  const std::unique_ptr<JobStore> start_store_;  // with a source
  RunnerReports reports_;
  StoreDesk desk_;
  const Result<std::unique_ptr<JobRunner>> runner_;

  OwnStart own_start_;
  std::optional<core::WorkerCore> core_;  // from here on: while it works
  std::optional<Lanes> lanes_;
  std::optional<core::worker_action::Done> done_;
  std::atomic<int> stops_asked_ = 0;
  int stops_told_ = 0;
  bool ran_ = false;
};

}  // namespace postrider::engine
