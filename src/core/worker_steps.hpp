#pragma once
/// \file
/// What the worker's core is told (inputs) and what it asks for (actions).
///
/// Whoever drives the core executes actions in the order given. Of `Take`, `Record`, `Beat` and
/// `StartTickets` at most one each is open at a time: the next one only after the answer to the
/// last, or its failure, was given as input. Where calls do not overlap, `Take` and `Record` are
/// not open together.
///
/// The actions about the source are for a worker that has one; `SourceOpened` or `SourceFailed`
/// answers `OpenSource`, and `SourceFailed` comes whenever the connection is lost, before anything
/// of the next one.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/ids.hpp>
#include <postrider/job.hpp>
#include <postrider/job_store_values.hpp>
#include <postrider/notice.hpp>
#include <postrider/result.hpp>
#include <postrider/task_source_values.hpp>
#include <postrider/worker_values.hpp>

namespace postrider::core {

namespace worker_input {

struct Begin {
  bool source = false;  ///< the worker has a source of tasks
};
/// Time has passed, nothing else.
struct Tick {};
/// Something may have become due.
struct Woken {};
/// The first: take nothing more and wait for what runs, `grace` long. A second one, or a later one,
/// goes on to the stop request at once.
struct Stop {};
/// `asked_at` is when the call was made: deadlines run from there.
struct Taken {
  TaskBatch batch;
  Instant asked_at{};
};
/// By the order of the updates in `worker_action::Record`.
struct Recorded {
  std::vector<RecordAnswer> answers;
};
struct TakeFailed {
  Error error;
};
struct RecordFailed {
  Error error;
};
struct Beaten {
  HeartbeatAnswer answer;
  Instant asked_at{};
};
struct BeatFailed {
  Error error;
};
/// An attempt has moved its deadline, as the store has answered it.
struct Extended {
  DispatchId dispatch_id;
  milliseconds until_timeout{0};
  Instant asked_at{};
};
/// An attempt has ended.
struct Ended {
  DispatchId dispatch_id;
  AttemptEnd end;
};

struct SourceOpened {};
/// It could not be opened, or its connection is lost.
struct SourceFailed {
  Error error;
};
struct Offered {
  TicketBatch batch;
};
/// To the requests of `worker_action::StartTickets`, in their order, as far as the store answered;
/// `failure` is why it did not answer the next one.
struct TicketsStarted {
  struct Answer {
    StartAnswer start;
    Instant asked_at{};
  };
  std::vector<Answer> answers;
  std::optional<Error> failure;
};

}  // namespace worker_input

using WorkerInput =
    std::variant<worker_input::Begin, worker_input::Tick, worker_input::Woken, worker_input::Stop,
                 worker_input::Taken, worker_input::Recorded, worker_input::TakeFailed,
                 worker_input::RecordFailed, worker_input::Beaten, worker_input::BeatFailed,
                 worker_input::Extended, worker_input::Ended, worker_input::SourceOpened,
                 worker_input::SourceFailed, worker_input::Offered, worker_input::TicketsStarted>;

namespace worker_action {

struct Take {
  TakeRequest request;
};
struct Record {
  RecordRequest request;
};
struct Beat {
  HeartbeatRequest request;
};
/// Run an attempt. Its end comes as `Ended`.
struct Start {
  Task task;
};
struct RequestStop {
  DispatchId dispatch_id;
};
/// End it with all that it has started; without effect on a runner that cannot.
struct Kill {
  DispatchId dispatch_id;
};
struct Notify {
  Notice notice;
};
struct Done {
  WorkerReport report;
  std::optional<Error> error;
};

/// Connect, and let at most so many tickets be unacknowledged.
struct OpenSource {
  std::size_t prefetch = 1;
};
/// Ask the store for each of these in turn, up to the first failure.
struct StartTickets {
  std::vector<StartRequest> requests;
};
struct Acknowledge {
  std::vector<TicketTag> tags;
};
/// Ask for no more tickets, and keep the connection for what is still to be acknowledged.
struct CancelSource {};
/// Everything is acknowledged that ever will be. Nothing about the source is asked for after it.
struct CloseSource {};

}  // namespace worker_action

using WorkerAction =
    std::variant<worker_action::Take, worker_action::Record, worker_action::Beat,
                 worker_action::Start, worker_action::RequestStop, worker_action::Kill,
                 worker_action::Notify, worker_action::Done, worker_action::OpenSource,
                 worker_action::StartTickets, worker_action::Acknowledge,
                 worker_action::CancelSource, worker_action::CloseSource>;

}  // namespace postrider::core
