#pragma once
/// \file
/// The seam of people for jobs: what `postrider job`, `queue`, `worker list` and `status` ask of a
/// database, as operations.hpp is for deliveries.
///
/// Reading never locks and never writes, and returns neither payloads nor checkpoints. Each change
/// is one transaction that is written to `postrider_audit`; one that changes nothing leaves no
/// line. Changes of a job are conditional on its row: of a change and an end that meet, exactly one
/// wins, and the other side is told.
///
/// Thread safety: one thread at a time per object.

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
#include <postrider/job_store_values.hpp>
#include <postrider/listing.hpp>
#include <postrider/operations.hpp>
#include <postrider/result.hpp>
#include <postrider/route.hpp>

namespace postrider {

/// The route of jobs that were enqueued by hand. No configured route can have this name.
inline constexpr std::string_view enqueue_route = "@enqueue";

/// All jobs of one name in one queue.
struct JobCounts {
  std::string queue;
  std::string job;
  std::int64_t due = 0;
  std::int64_t delayed = 0;
  std::int64_t dispatched = 0;
  std::int64_t overdue = 0;  ///< of `dispatched`: the deadline has passed
  std::int64_t completed = 0;
  std::int64_t failed = 0;  ///< dead letters without a later generation
  std::int64_t discarded = 0;
  std::int64_t cancelled = 0;
  std::int64_t retries = 0;  ///< failed attempts, so far and of all
  std::int64_t deaths = 0;   ///< workers lost, without those that run
  std::int64_t snoozes = 0;
  std::int64_t interruptions = 0;
  std::optional<milliseconds> oldest_due_age;
  std::optional<milliseconds> oldest_dispatched_age;
};

/// At most `limit` jobs begin in any `period`, over all workers; a pause saves up to one limit.
struct RateLimit {
  static constexpr int most_limit = 1'000'000;
  static constexpr milliseconds most_period = std::chrono::hours(24 * 30);

  int limit = 0;           ///< 1 to `most_limit`
  milliseconds period{0};  ///< 1 ms to `most_period`
  friend bool operator==(const RateLimit&, const RateLimit&) = default;
};

/// What people have said of a queue.
struct QueueState {
  std::string queue;
  std::optional<Timestamp> paused_at;  ///< set: nothing is taken from it
  std::string paused_by;
  std::string reason;
  std::optional<RateLimit> rate_limit;
};

struct JobStatus {
  std::vector<JobCounts> jobs;     ///< by queue, then job
  std::vector<QueueState> queues;  ///< by name; those of which something is said
};

/// A job's row. Never its payload or the bytes of its checkpoint.
struct JobDetail {
  Delivery delivery;
  std::string job;
  std::string queue;
  JobTransport transport = JobTransport::database;
  int priority = 0;
  std::optional<std::string> serial_key;
  int serial_limit = 0;  ///< 0 without a serial key
  std::optional<std::string> unique_key;
  OnWorkerDeath on_worker_death = OnWorkerDeath::fail;
  int max_deaths = 0;
  milliseconds timeout_limit{0};
  int deaths = 0;  ///< without the attempt that runs
  int snoozes = 0;
  int interruptions = 0;
  std::optional<WorkerId> worker;  ///< of the last attempt
  std::string worker_name;         ///< empty when nothing is known of it
  std::string worker_host;
  std::optional<Timestamp> cancel_requested_at;
  std::optional<int> percent;
  std::string note;
  std::int64_t checkpoint_bytes = 0;
  std::string event_type;
  std::optional<Aggregate> aggregate;
  JobHooks hooks;
  std::vector<JobFailure> failures;  ///< of `job` alone: the latest ones, oldest first
};

/// Which jobs are meant. All fields that are set must hold.
struct JobFilter {
  std::optional<std::string> queue;
  std::optional<std::string> job;
  std::optional<DeliveryStatus> status;
  std::optional<DeliveryId> after;      ///< the last one of the page before: only older ones
  std::size_t limit = 100;              ///< 1 to `most_listed`
  std::size_t examine = most_examined;  ///< rows looked at for one page, 1 to `most_examined`
};

/// Newest first, that is, by falling id.
struct JobPage {
  std::vector<JobDetail> jobs;
  /// `after` of the next page, which may be empty; not set when there is none.
  std::optional<DeliveryId> next;
};

/// Errors: `invalid_argument` when `limit` or `examine` is out of its range.
[[nodiscard]] Result<void> check(const JobFilter& filter);

/// A moment by the database's clock.
struct DueTime {
  std::optional<Timestamp> at;  ///< wins over `in`
  milliseconds in{0};           ///< from now on, 0 to 10 years
};

/// Errors: `invalid_argument`.
[[nodiscard]] Result<void> check(const DueTime& due);

/// A job that is written with its event, without any route.
struct EnqueueRequest {
  /// `available_at` must be empty: `due` says when the job begins.
  NewEvent event;
  /// `serial_key` and `unique_key` are taken as they are, not as templates.
  JobPolicy policy;
  std::vector<milliseconds> retry_delays = Route{}.retry_delays;
  milliseconds timeout = Route{}.timeout;
  DueTime due;
};

/// Tells whether `request` may be written. Errors: `invalid_argument` and `limit_exceeded`, of the
/// event as `check` of event.hpp, of the policy as `validate` of route.hpp.
[[nodiscard]] Result<void> check(const EnqueueRequest& request);

struct EnqueueAnswer {
  DeliveryId delivery_id;
  EventId event_id;
  /// False: a job with this unique key is pending or dispatched. It is the one that is returned,
  /// and nothing was written.
  bool inserted = true;
};

/// What a change of one job came to.
struct JobAnswer {
  enum class Kind : std::uint8_t {
    changed,
    requested,  ///< it runs: its worker is told with the next heartbeat
    refused,    ///< `status` does not allow it
    unknown,    ///< there is no such job
  };
  Kind kind = Kind::unknown;
  std::optional<DeliveryStatus> status;  ///< after the call; empty with `unknown`
  friend bool operator==(const JobAnswer&, const JobAnswer&) = default;
};

[[nodiscard]] std::string_view to_string(JobAnswer::Kind kind) noexcept;

/// A start of a worker.
struct ListedWorker {
  WorkerInfo info;
  Timestamp started_at;
  milliseconds last_seen_age{0};
  std::int64_t running = 0;  ///< attempts in its hands
};

/// Tells whether a queue may have this name. Errors: `invalid_argument`.
[[nodiscard]] Result<void> check_queue_name(std::string_view queue);
/// Errors: `invalid_argument`.
[[nodiscard]] Result<void> check(const RateLimit& rate_limit);

class JobOperations {
 public:
  /// Most workers that are listed.
  static constexpr std::size_t most_workers = 1000;

  virtual ~JobOperations() = default;

  /// Cost: reads all rows of jobs once.
  virtual Result<JobStatus> status(std::optional<Timestamp> now, Deadline deadline) = 0;
  virtual Result<JobPage> jobs(const JobFilter& filter, Deadline deadline) = 0;
  /// Nothing when there is no such job.
  virtual Result<std::optional<JobDetail>> job(const DeliveryId& id, Deadline deadline) = 0;
  /// Those that live, or with `ended` all of them; the latest `most_workers`, newest first.
  virtual Result<std::vector<ListedWorker>> workers(bool ended, std::optional<Timestamp> now,
                                                    Deadline deadline) = 0;

  /// Writes an event, routed already, and its one delivery, in one transaction.
  ///
  /// Errors: of `check`; `already_exists` when the event's id or aggregate's version is taken.
  virtual Result<EnqueueAnswer> enqueue(const EnqueueRequest& request, const Operator& who,
                                        std::optional<Timestamp> now, Deadline deadline) = 0;
  /// A waiting job is cancelled at once; of one that runs the worker is asked to stop it, and it
  /// ends as cancelled unless it finishes first.
  virtual Result<JobAnswer> cancel(const DeliveryId& id, const Operator& who,
                                   std::optional<Timestamp> now, Deadline deadline) = 0;
  /// Moves the due time of a waiting job.
  virtual Result<JobAnswer> reschedule(const DeliveryId& id, const DueTime& due,
                                       const Operator& who, std::optional<Timestamp> now,
                                       Deadline deadline) = 0;

  /// Nothing is taken from it any more; what runs goes on. Idempotent, as are the other two; the
  /// answer tells whether it changed anything.
  virtual Result<bool> queue_pause(const std::string& queue, const Operator& who,
                                   std::optional<Timestamp> now, Deadline deadline) = 0;
  virtual Result<bool> queue_resume(const std::string& queue, const Operator& who,
                                    std::optional<Timestamp> now, Deadline deadline) = 0;
  /// Without a limit: as many as can be.
  virtual Result<bool> queue_limit(const std::string& queue,
                                   const std::optional<RateLimit>& rate_limit, const Operator& who,
                                   std::optional<Timestamp> now, Deadline deadline) = 0;
};

}  // namespace postrider
