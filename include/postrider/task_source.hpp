#pragma once
/// \file
/// The seam between a worker and a broker that hands it jobs: `TaskSource`.
///
/// A relay dispatches due jobs of a route with a destination and sends each as a *task* to a queue
/// of a broker. A source gives such tasks to a worker as *tickets*. A ticket is a claim on a
/// dispatch and not the job itself: whether the dispatch is still to be run is what
/// `JobStore::start` answers, and the event comes from there too. So a ticket may come late, twice
/// or after its job has ended, and nothing is done twice.
///
/// The broker keeps a task until its ticket is acknowledged, which a worker does once the outcome
/// of the attempt stands in the database, or when there is nothing to do. Only the database
/// retries: a source never gives a task back to its queue while the connection stands. When the
/// connection ends, by `close` or by itself, the broker gives out again what was not acknowledged.
///
/// A source translates: it makes no retry, wait or log. When to open it again is decided by the
/// worker's core.
///
/// Ownership: a worker owns its source. Thread safety: one thread at a time, except `wake` and
/// `cut`.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include <postrider/clock.hpp>
#include <postrider/result.hpp>
#include <postrider/task_source_values.hpp>

namespace postrider {

struct TaskSourceTraits {
  std::string_view name;  ///< "amqp"
};

class TaskSource {
 public:
  virtual ~TaskSource() = default;

  [[nodiscard]] virtual TaskSourceTraits traits() const = 0;

  /// Connects, and asks for tickets, of which at most `prefetch` are unacknowledged at any time:
  /// that is the bound of all that a source and its worker hold. A connection that stands is ended
  /// first. Creates nothing at the broker.
  ///
  /// Blocking: until the deadline, and for a name resolution.
  /// Requires: `prefetch` is at least 1.
  /// Errors: with `stop` what a person has to mend, as a queue that does not exist or may not be
  ///   read; with others it may work later.
  virtual Result<void> open(std::size_t prefetch, Deadline deadline) = 0;

  /// Waits for tickets until there is one, `wake` was called, or the deadline has passed; keeps the
  /// connection alive meanwhile. Refuses what is no task, so that it comes to nobody again.
  ///
  /// Requires: it is open.
  /// Errors: the connection is gone. Its tickets come again, here or elsewhere.
  [[nodiscard]] virtual Result<TicketBatch> poll(Deadline deadline) = 0;

  /// Takes tickets off the broker's queue, for good. Those of an earlier connection are passed
  /// over: they have come again, or will.
  ///
  /// Errors: the connection is gone; some may have been acknowledged.
  virtual Result<void> acknowledge(std::span<const TicketTag> tags) = 0;

  /// Asks for no more tickets; what was given can still be acknowledged. Tickets that were on their
  /// way are dropped, and come again after `close`. Idempotent, without effect when not open.
  virtual Result<void> cancel(Deadline deadline) = 0;

  /// Ends the connection after what was acknowledged has arrived. Idempotent.
  virtual void close(Deadline deadline) noexcept = 0;

  /// Ends a running `poll`, or the next one. Thread safety: any thread.
  virtual void wake() noexcept = 0;
  /// Breaks the connection and each later one, so that no call waits any more but for a name
  /// resolution. Thread safety: any thread.
  virtual void cut() noexcept = 0;
};

/// Makes a source; nothing is connected, and no thread started.
using TaskSourceFactory = std::function<std::unique_ptr<TaskSource>()>;

}  // namespace postrider
