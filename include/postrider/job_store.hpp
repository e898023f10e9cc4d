#pragma once
/// \file
/// The seam between workers and a database: `JobStore`.
///
/// One call is one transaction, and the rules of `Store` hold: calls block, each with a deadline;
/// `now` is the time to judge by, empty means the database's own clock; nothing stays locked.
/// A store translates: what an attempt's end means is decided by the core, in
/// src/core/job_verdict.hpp.
///
/// Rows of jobs need no lease: each is claimed by itself, and every change names its dispatch.
///
/// Ownership: as of `Store`. Thread safety: one thread at a time per object, except `wake`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/job_store_values.hpp>
#include <postrider/result.hpp>

namespace postrider {

struct JobStoreTraits {
  std::string_view name;
  bool durable = true;
  /// Several connections write at once: a worker then records on one while it takes on another.
  bool concurrent_writers = false;
};

class JobStore {
 public:
  virtual ~JobStore() = default;

  [[nodiscard]] virtual JobStoreTraits traits() const = 0;
  /// As of `Store`.
  virtual Result<void> check_schema(Deadline deadline) = 0;

  /// Registers a worker, or says that it lives. Its state `stopped` signs it off.
  virtual Result<HeartbeatAnswer> heartbeat(const HeartbeatRequest& request, Deadline deadline) = 0;

  /// Declares a start of a worker dead that was seen to be gone; its attempts are lost at once.
  /// Idempotent.
  virtual Result<void> declare_dead(WorkerId worker, std::optional<Timestamp> now,
                                    Deadline deadline) = 0;

  /// Starts of workers on `host` that are not stopped or dead.
  virtual Result<std::vector<WorkerInfo>> workers_on(const std::string& host,
                                                     Deadline deadline) = 0;

  /// Dispatches due jobs of `JobTransport::database` to a worker and returns them with their
  /// events, each counted as a death until its end is recorded.
  ///
  /// Order: by priority, due time and id within a queue. Of one serial key at most `serial_limit`
  ///   are dispatched, and none before an earlier open one. Nobody waits for rows that another
  ///   worker is taking, but takers of a queue with a rate, or of one key with a limit above 1, may
  ///   come one after the other. A worker that has been declared dead, or is unknown, takes
  ///   nothing.
  /// Cost: of what is returned, whatever waits, is delayed or has ended.
  virtual Result<TaskBatch> take(const TakeRequest& request, Deadline deadline) = 0;

  /// The same for one dispatch that a relay has made and a broker has delivered. Its deadline
  /// stays: it covers the wait in the broker's queue.
  virtual Result<StartAnswer> start(const StartRequest& request, Deadline deadline) = 0;

  /// Dispatches due jobs of `JobTransport::broker`, without a worker yet.
  virtual Result<TaskBatch> hand_out(const HandOutRequest& request, Deadline deadline) = 0;

  /// Applies ends of attempts, each by itself; answers are in the order of the updates. No end that
  /// leaves the job pending is applied after a cancel request, so that none is ever forgotten.
  /// With an end, and only with one that is recorded now, go its failure and its events.
  /// Order: events of one update in the order given. They stand behind the event of the job; of
  ///   events that applications write of the same aggregate at the same time nobody waits.
  /// Cost: an end without failure and events costs no statement more.
  virtual Result<std::vector<RecordAnswer>> record(const RecordRequest& request,
                                                   Deadline deadline) = 0;

  /// Is this attempt still current? With what it wants to write.
  virtual Result<AttemptState> touch(const AttemptUpdate& update, Deadline deadline) = 0;

  /// Finds attempts that nobody will end, of dead workers first. Changes no job: whoever asks
  /// records their ends. However many run well, none that is lost hides behind them.
  virtual Result<LostBatch> lost(const LostRequest& request, Deadline deadline) = 0;

  /// Waits until something may have become due in one of these queues, `wake` was called, or the
  /// deadline has passed. May end early without reason. Polls nothing.
  virtual Result<void> await_work(const std::vector<std::string>& queues, Deadline deadline) = 0;
  /// Ends a running `await_work`, or the next one. Thread safety: any thread.
  virtual void wake() noexcept = 0;
};

}  // namespace postrider
