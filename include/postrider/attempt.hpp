#pragma once
/// \file
/// What a handler can ask and say while it runs: `Attempt`.
///
/// Every question and every write is one conditional update of the job's row that names the
/// dispatch: when another attempt has taken this one's place, nothing is written and the answer
/// says so. The handler should stop then; its result would change nothing.

#include <stop_token>
#include <string>
#include <string_view>

#include <postrider/clock.hpp>
#include <postrider/ids.hpp>
#include <postrider/job.hpp>
#include <postrider/job_store_values.hpp>
#include <postrider/result.hpp>

namespace postrider {

/// The seam between attempts that run and their rows. A worker makes one and hands it to whatever
/// runs its jobs.
///
/// Thread safety: any thread.
class AttemptDesk {
 public:
  virtual ~AttemptDesk() = default;

  /// Blocking: on the database, and on attempts that ask at the same time.
  /// Errors: of the database, and `timeout`. It is not known then whether the attempt is current.
  [[nodiscard]] virtual Result<AttemptState> touch(AttemptUpdate update) = 0;
};

/// A failure of this attempt would be final, as no retry delay is left.
struct LastAttempt {
  bool value = false;
  explicit operator bool() const noexcept { return value; }
};

/// One attempt of a job, as its handler sees it. Exists while the handler runs.
///
/// Thread safety: any thread.
class Attempt {
 public:
  /// Ownership: borrows `task` and `desk`, which must outlive it.
  Attempt(const Task& task, AttemptDesk& desk, std::stop_token stop);
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  [[nodiscard]] const DeliveryId& delivery_id() const noexcept { return task_.job.delivery_id; }
  [[nodiscard]] const EventId& event_id() const noexcept { return task_.job.event_id; }
  [[nodiscard]] const DispatchId& dispatch_id() const noexcept { return task_.dispatch_id; }
  [[nodiscard]] const std::string& job() const noexcept { return task_.job.job; }
  [[nodiscard]] const std::string& queue() const noexcept { return task_.job.queue; }
  /// 1 for the first one.
  [[nodiscard]] int number() const noexcept { return task_.job.attempts + 1; }
  [[nodiscard]] LastAttempt last_attempt() const noexcept { return {task_.job.last_attempt()}; }
  /// What an attempt before this one has given to `checkpoint` last; empty when there is nothing.
  [[nodiscard]] const std::string& last_checkpoint() const noexcept { return task_.checkpoint; }

  /// Asks to stop: a person has cancelled the job, its deadline has passed, or the worker ends.
  /// Whoever stops half-way returns `JobOutcome::cancelled()`: the worker knows why it has asked,
  /// and cancels the job, tries it again, or gives it back without using an attempt.
  [[nodiscard]] const std::stop_token& stop_token() const noexcept { return stop_; }
  [[nodiscard]] bool stop_requested() const noexcept { return stop_.stop_requested(); }

  /// False: another attempt has taken its place, or the job has ended. Ask between two portions.
  [[nodiscard]] Result<bool> is_current();

  /// Moves the deadline to so long from now, at most to the route's `timeout_limit` after the
  /// dispatch; the answer holds what is left.
  ///
  /// Errors: also `invalid_argument` for a duration that is not positive.
  [[nodiscard]] Result<AttemptState> extend(milliseconds duration);

  /// For people. The note is cut at `AttemptUpdate::most_note_bytes`; it holds no secrets.
  ///
  /// Errors: also `invalid_argument` for a percentage outside 0 to 100, and for a note that is not
  /// UTF-8 or holds a control character.
  Result<AttemptState> progress(int percent, std::string_view note = {});

  /// Bytes that the next attempt finds in `last_checkpoint`.
  ///
  /// Errors: also `limit_exceeded` above `AttemptUpdate::most_checkpoint_bytes`.
  Result<AttemptState> checkpoint(std::string_view cursor);

 private:
  [[nodiscard]] AttemptUpdate update() const;

  const Task& task_;
  AttemptDesk& desk_;
  const std::stop_token stop_;
};

}  // namespace postrider
