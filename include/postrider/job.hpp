#pragma once
/// \file
/// Jobs: deliveries that complete when a worker reports, and only then.
///
/// A job route makes one delivery of kind job per event. It waits in a *queue*, is dispatched to a
/// worker as a *task*, and ends by itself, whatever becomes of the event's other deliveries.
///
///                  ┌──────────────────────────────────────────────────────┐
///                  ▼                                                      │
///   pending ───▶ dispatched ──▶ completed                                 │
///      │             ├──▶ failed ──▶ discarded (a person)                 │
///      │             ├──▶ cancelled (a person asked while it ran)         │
///      │             └──▶ retry, snooze, interruption, death under a cap ─┘
///      └──▶ cancelled (a person)
///
/// Every arrow that leaves dispatched names the dispatch and changes nothing when another one has
/// taken its place.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/event.hpp>
#include <postrider/ids.hpp>

namespace postrider {

/// What becomes of a job whose worker died.
enum class OnWorkerDeath : std::uint8_t {
  fail,   ///< it has failed: worker_died
  retry,  ///< it is tried again by its delays, at most `max_deaths` times
};

/// How a task reaches its worker.
enum class JobTransport : std::uint8_t {
  database,  ///< workers take it from the table
  broker,    ///< a relay hands it to the queue of a broker
};

[[nodiscard]] std::string_view to_string(OnWorkerDeath on_worker_death) noexcept;
[[nodiscard]] std::string_view to_string(JobTransport transport) noexcept;
[[nodiscard]] std::optional<OnWorkerDeath> parse_on_worker_death(std::string_view text) noexcept;
[[nodiscard]] std::optional<JobTransport> parse_job_transport(std::string_view text) noexcept;

/// Types of the events that tell of what becomes of a job. Each is written in the transaction that
/// records the transition, so that it exists exactly when the transition does, and is routed as any
/// other event. Empty: nobody is told.
///
/// A job that ends as cancelled tells nothing, nor does one that failed before it was dispatched.
/// The payload is described in docs/learn/jobs.md.
struct JobHooks {
  /// How many hooks may stand between an event and the one that no job wrote: at this depth a job
  /// has no hooks any more, so that none can feed itself for ever.
  static constexpr int most_depth = 8;
  /// Headers of such an event: the id of the event whose job it tells of, and its depth.
  static constexpr std::string_view causation_header = "causation-id";
  static constexpr std::string_view depth_header = "postrider-hook-depth";

  std::string completed_event;  ///< it has completed
  std::string retry_event;      ///< an attempt has failed, and it waits for the next one
  std::string failed_event;     ///< it has failed for good, for whatever reason
  std::string death_event;      ///< its worker died; one of the two above is told as well

  [[nodiscard]] bool empty() const noexcept {
    return completed_event.empty() && retry_event.empty() && failed_event.empty() &&
           death_event.empty();
  }
  friend bool operator==(const JobHooks&, const JobHooks&) = default;
};

/// What makes a route a job route. Copied into every delivery row, where it does not change.
struct JobPolicy {
  static constexpr int least_priority = -100;
  static constexpr int most_priority = 100;
  static constexpr int most_serial_limit = 1000;
  static constexpr int most_max_deaths = 100;
  static constexpr std::size_t most_key_bytes = 255;
  static constexpr milliseconds default_timeout = std::chrono::minutes(10);
  static constexpr milliseconds most_timeout = std::chrono::hours(24 * 7);

  /// What handlers are bound to: 1 to 64 of a-z, A-Z, 0-9, '_', '-', '.'.
  std::string job;
  /// Where tasks wait: 1 to 64 of a-z, 0-9, '_', '-', '.'.
  std::string queue;
  OnWorkerDeath on_worker_death = OnWorkerDeath::fail;
  /// With `OnWorkerDeath::retry`: the death after so many others is final. 0 to `most_max_deaths`.
  int max_deaths = 2;
  /// Lower goes first; within one priority the due time decides, then the id.
  int priority = 0;
  /// Jobs of one queue with equal keys run in the order of their events, at most `serial_limit` at
  /// once; one that waits for its retry is still in front of the next. A template of text, {type},
  /// {aggregate_type}, {aggregate_id} and {header:NAME}, such as "{aggregate_id}"; empty: nobody
  /// waits. Nor does the job of an event that lacks a part, or whose key is empty. A key of more
  /// than `most_key_bytes` makes the job fail: key_too_long.
  std::string serial_key;
  int serial_limit = 1;
  /// While a job with this key is pending or dispatched, the database refuses a second one of the
  /// same job: the event is routed without it. A template like `serial_key`. This is not serial
  /// execution.
  std::string unique_key;
  /// How far extensions may move an attempt's deadline from its dispatch; at least the route's
  /// timeout, at most `most_timeout`.
  milliseconds timeout_limit = std::chrono::hours(24);
  JobHooks hooks;

  friend bool operator==(const JobPolicy&, const JobPolicy&) = default;
};

/// A job's hooks, with what their events take from the job's own event.
struct HookContext {
  JobHooks hooks;
  std::string event_type;
  std::optional<Aggregate> aggregate;
  int depth = 0;  ///< of the job's own event; 0 when no hook wrote it
};

/// A job's row as an attempt sees it: what is needed to judge how the attempt ended.
struct Job {
  DeliveryId delivery_id;
  EventId event_id;
  Seq event_seq;
  std::string route;
  std::string job;
  std::string queue;
  int attempts = 0;  ///< failed attempts before this one
  std::vector<milliseconds> retry_delays;
  milliseconds timeout{0};
  milliseconds timeout_limit{0};
  OnWorkerDeath on_worker_death = OnWorkerDeath::fail;
  int max_deaths = 0;
  /// Before this dispatch. On the row a dispatch counts as a death until its end says otherwise, so
  /// that no crash can hide one.
  int deaths = 0;
  int snoozes = 0;
  int interruptions = 0;
  bool cancel_requested = false;
  std::shared_ptr<const HookContext> hooks;  ///< null when it has none

  /// A failure of this attempt would be final: no retry delay is left.
  [[nodiscard]] bool last_attempt() const noexcept {
    return attempts >= static_cast<int>(retry_delays.size());
  }
};

/// One attempt of a job, in the hands of a worker.
struct Task {
  Job job;
  DispatchId dispatch_id;
  std::shared_ptr<const Event> event;
  std::string checkpoint;         ///< of the attempt before; empty when there is none
  milliseconds until_timeout{0};  ///< by the database's clock, when it was asked for
  std::string malformed;          ///< why the event cannot be read; empty when it can
};

/// What a handler says of its attempt.
struct JobOutcome {
  enum class Kind : std::uint8_t {
    done,
    retry,      ///< uses an attempt
    fail,       ///< final
    snooze,     ///< later, without using an attempt; at most `most_snoozes` times
    cancelled,  ///< it saw the request and stopped
  };
  static constexpr int most_snoozes = 1000;
  static constexpr std::size_t code_bytes = 64;     ///< longer codes are cut
  static constexpr std::size_t detail_bytes = 200;  ///< longer details are cut
  static constexpr milliseconds most_delay = std::chrono::hours(24 * 30);

  Kind kind = Kind::done;
  std::string code;    ///< safe reason code, a short snake_case word
  std::string detail;  ///< safe text for people; no payload, no secret
  /// With `snooze` always, with `retry` in place of the next retry delay. 1 ms to `most_delay`.
  std::optional<milliseconds> delay;

  // What is given is cleaned: valid UTF-8 without control characters, of a bounded length, and a
  // delay within its bounds. An empty code becomes handler_error.
  [[nodiscard]] static JobOutcome done();
  [[nodiscard]] static JobOutcome retry(std::string_view code, std::string_view detail = {});
  [[nodiscard]] static JobOutcome retry_in(milliseconds delay, std::string_view code,
                                           std::string_view detail = {});
  [[nodiscard]] static JobOutcome fail(std::string_view code, std::string_view detail = {});
  [[nodiscard]] static JobOutcome snooze(milliseconds delay);
  [[nodiscard]] static JobOutcome cancelled();

  friend bool operator==(const JobOutcome&, const JobOutcome&) = default;
};

[[nodiscard]] std::string_view to_string(JobOutcome::Kind kind) noexcept;

/// The worker, or the process that ran the attempt, is gone without a result. Holds numbers only:
/// the text of a crash may hold anybody's data.
struct WorkerDeath {
  int signal = 0;                ///< 0: it ended by itself
  std::optional<int> exit_code;  ///< with signal 0, when it is known
  bool out_of_memory = false;
  friend bool operator==(const WorkerDeath&, const WorkerDeath&) = default;
};
/// The deadline passed without a result.
struct TimedOut {
  friend bool operator==(const TimedOut&, const TimedOut&) = default;
};
/// Given back by a worker that stops: due at once, no attempt used.
struct Interrupted {
  friend bool operator==(const Interrupted&, const Interrupted&) = default;
};
/// The transport did not take the task.
struct SendRefused {
  std::string code;
  std::string detail;
  friend bool operator==(const SendRefused&, const SendRefused&) = default;
};

/// How an attempt ended.
using AttemptEnd = std::variant<JobOutcome, WorkerDeath, TimedOut, Interrupted, SendRefused>;

/// Reason codes that we set ourselves; handlers' own codes stand beside them.
namespace job_code {
inline constexpr std::string_view handler_error = "handler_error";
inline constexpr std::string_view worker_died = "worker_died";
inline constexpr std::string_view out_of_memory = "oom_killed";
inline constexpr std::string_view exited_without_result = "exited_without_result";
inline constexpr std::string_view timed_out = "timed_out";
inline constexpr std::string_view interrupted = "interrupted";
inline constexpr std::string_view send_refused = "send_refused";
inline constexpr std::string_view snoozed_too_often = "snoozed_too_often";
inline constexpr std::string_view cancelled = "cancelled";
inline constexpr std::string_view no_handler = "no_handler";
inline constexpr std::string_view undecodable = "undecodable";
inline constexpr std::string_view key_too_long = "key_too_long";
}  // namespace job_code

}  // namespace postrider
