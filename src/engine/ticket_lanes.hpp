#pragma once
/// \file
/// What a worker with a source of tasks has beside its other lanes: the source, and a connection of
/// the database on which tickets are started, so that they wait for no take or record.

#include <functional>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/job_store.hpp>
#include <postrider/task_source.hpp>

#include "core/worker_steps.hpp"
#include "engine/call_lane.hpp"
#include "engine/source_lane.hpp"

namespace postrider::engine {

/// Thread safety: by the coordinator only; `answered` is called by the lanes' threads.
class TicketLanes {
 public:
  /// `answered` wakes the coordinator. Ownership: borrows all, which must outlive the lanes.
  TicketLanes(TaskSource& source, JobStore& store, milliseconds store_timeout, const Clock& clock,
              const std::function<void()>& answered);

  /// Adds what has happened since the last call.
  void add_inputs(std::vector<core::WorkerInput>& inputs);

  void execute(core::worker_action::OpenSource& open);
  void execute(core::worker_action::StartTickets& start);
  void execute(core::worker_action::Acknowledge& acknowledge);
  void execute(core::worker_action::CancelSource& cancel);
  void execute(core::worker_action::CloseSource& close);

 private:
  JobStore& store_;
  const milliseconds store_timeout_;
  const Clock& clock_;
  CallLane<core::WorkerInput> starts_;
  SourceLane source_;
};

}  // namespace postrider::engine
