#pragma once
/// \file
/// What workers, relays and a store say to each other of jobs: the values of the seam in
/// job_store.hpp.
///
/// Plain data without behaviour, so that decisions can be made and tested without a database.
/// `now` is the time to judge by; empty (production) means the database's own clock.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/delivery.hpp>
#include <postrider/event.hpp>
#include <postrider/ids.hpp>
#include <postrider/job.hpp>

namespace postrider {

/// Identity of one start of a worker process: never reused, so that new heartbeats keep nothing of
/// an older start alive.
using WorkerId = Named<Uuid, struct WorkerIdTag>;

enum class WorkerState : std::uint8_t {
  running,
  quiet,     ///< takes nothing more, finishes what it has
  stopping,  ///< has asked its jobs to stop
  stopped,   ///< signed off
  dead,      ///< said nothing for too long, or was seen to be gone
};

[[nodiscard]] std::string_view to_string(WorkerState state) noexcept;
[[nodiscard]] std::optional<WorkerState> parse_worker_state(std::string_view text) noexcept;

struct WorkerInfo {
  WorkerId id;
  std::string name;  ///< a label for people
  std::string host;  ///< with the identity of its boot, so that equal names are told apart
  std::int64_t pid = 0;
  std::string version;  ///< of this build
  std::vector<std::string> queues;
  WorkerState state = WorkerState::running;
};

struct HeartbeatRequest {
  WorkerInfo worker;  ///< registered by its first heartbeat
  std::vector<DispatchId> running;
  std::optional<Timestamp> now;
};

struct HeartbeatAnswer {
  /// False: this start was declared dead and its jobs were given away. It may go on under a new id
  /// only.
  bool known = true;
  std::vector<DispatchId> cancelled;  ///< of `running`: a person asked to stop them
  std::vector<DispatchId> lost;       ///< of `running`: another dispatch has taken their place
};

/// How much may be taken from one queue.
struct QueueTake {
  std::string queue;
  std::size_t at_most = 0;
};

struct TakeRequest {
  WorkerId worker;
  std::vector<QueueTake> queues;  ///< in order of preference; paused ones give nothing
  std::size_t limit = 0;          ///< altogether, at least 1
  /// A due job counts as one priority more urgent for each of these that it has waited. Zero:
  /// priorities are strict.
  milliseconds ageing{0};
  std::optional<Timestamp> now;
};

struct TaskBatch {
  std::vector<Task> tasks;
  bool more = false;                    ///< a limit cut the batch
  std::optional<milliseconds> next_in;  ///< until something of these queues becomes due
};

/// Takes up an attempt that a task from a broker names.
struct StartRequest {
  WorkerId worker;
  DeliveryId delivery_id;
  DispatchId dispatch_id;
  std::string job;
  std::optional<Timestamp> now;
  /// The answer to an earlier call may have been lost: what this worker has started by it is given
  /// to it once more.
  bool again = false;
};

struct StartAnswer {
  enum class Kind : std::uint8_t {
    started,
    stale,      ///< not dispatched, or under another id: nothing is to be done
    wrong_job,  ///< the delivery is of another job
    taken,      ///< a worker has started this dispatch: the broker gave it out twice
    /// Nothing is said of the task: who asks was declared dead, or is unknown.
    worker_gone,
  };
  Kind kind = Kind::stale;
  std::optional<Task> task;  ///< with `started`
};

/// Dispatches due jobs of broker routes, before their tasks are handed over.
struct HandOutRequest {
  std::vector<std::string> routes;
  std::size_t limit = 0;
  std::optional<Timestamp> now;
};

/// A failed attempt of a job, in its history.
struct JobFailure {
  static constexpr int most_kept = 10;  ///< of one job; older ones are gone

  DispatchId dispatch_id;
  int attempt = 0;  ///< which failure of the job it was, from 1 on
  Timestamp failed_at;
  std::string code;
  std::string detail;
  std::optional<WorkerId> worker;  ///< that ran it, when it is known
  friend bool operator==(const JobFailure&, const JobFailure&) = default;
};

/// How an attempt ended, as a change of its row: applied only while the row is dispatched under
/// `dispatch_id`.
struct JobUpdate {
  DeliveryId delivery_id;
  DispatchId dispatch_id;
  DeliveryStatus status = DeliveryStatus::completed;
  int attempts = 0;
  int deaths = 0;
  int snoozes = 0;
  int interruptions = 0;
  milliseconds available_in{0};  ///< pending: due so long after the database's now
  std::string failure_code;
  std::string failure_detail;
  /// Applied only while no worker has started the dispatch: of what a relay takes back.
  bool unless_started = false;
  /// An attempt has failed: if the update is applied, `failure_code` and `failure_detail` join the
  /// history of the job, with who ran it. Its `JobFailure::most_kept` latest ones stay.
  bool keeps_failure = false;
  std::optional<WorkerId> worker;
  /// Written in the transaction of the update, if it is applied. Requires: each passes `check`.
  std::vector<NewEvent> events;
  /// What the dispatch came to, in one word for comparing: the same result may be given twice.
  std::string result;
};

struct RecordRequest {
  std::vector<JobUpdate> updates;
  std::optional<Timestamp> now;
};

enum class RecordAnswer : std::uint8_t {
  recorded,
  repeated,  ///< this dispatch has this result already
  conflict,  ///< this dispatch has another result; that one stays
  stale,     ///< another dispatch has taken its place, or a person has ended it
  /// Not recorded: a person wants the job cancelled, so it may end but not wait again.
  cancel_requested,
};

/// What an attempt says or asks while it runs. Applied only while it is current.
struct AttemptUpdate {
  static constexpr std::size_t most_note_bytes = 200;
  static constexpr std::size_t most_checkpoint_bytes = 64U << 10U;

  DeliveryId delivery_id;
  DispatchId dispatch_id;
  std::optional<milliseconds> extend;  ///< the deadline becomes now + this, up to the route's limit
  std::optional<int> percent;          ///< 0 to 100
  std::optional<std::string> note;
  std::optional<std::string> checkpoint;
  std::optional<Timestamp> now;
};

struct AttemptState {
  bool current = false;  ///< false: stop, a result would change nothing
  bool cancel_requested = false;
  milliseconds until_timeout{0};  ///< while current
};

struct LostRequest {
  milliseconds dead_after{0};  ///< a worker that said nothing for so long is declared dead
  std::size_t limit = 0;
  std::optional<Timestamp> now;
};

/// An attempt that nobody will end: its worker is dead, or its deadline has passed.
struct LostAttempt {
  Job job;
  DispatchId dispatch_id;
  bool worker_died = false;  ///< else its deadline has passed
  std::optional<WorkerId> worker;
};

struct LostBatch {
  std::vector<LostAttempt> attempts;
  std::vector<WorkerId> died;  ///< declared dead by this call
  bool more = false;
};

}  // namespace postrider
