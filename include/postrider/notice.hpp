#pragma once
/// \file
/// What a relay or a worker tells about itself: one notice for one thing that happened.
///
/// A notice holds ids, words and numbers, and never a payload, a secret or a third party's text.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <postrider/clock.hpp>
#include <postrider/delivery.hpp>
#include <postrider/ids.hpp>

namespace postrider {

enum class Severity : std::uint8_t { debug, info, warning, error };

enum class NoticeKind : std::uint8_t {
  delivery_completed,    ///< debug; only of deliveries that had a row, first attempts are counted
  retry_scheduled,       ///< warning
  delivery_failed,       ///< error: a dead letter
  event_held,            ///< warning: no route matches
  event_discarded,       ///< info: no route matches and `unrouted = "discard"`
  result_stale,          ///< warning: a result did not find its delivery
  route_paused,          ///< warning: the destination is down, suspect, or asked to wait
  route_resumed,         ///< info
  route_stopped,         ///< error: `on_failed = "stop"`, or its address is gone
  lease_gained,          ///< info
  lease_lost,            ///< warning
  crashes_suspected,     ///< warning: relays die one after the other; one event at a time from here
  crashes_cleared,       ///< info: everything that was suspect is settled; full speed again
  store_failed,          ///< warning: one line per change of state
  store_recovered,       ///< info
  name_shared,           ///< warning: another relay works under this one's name
  rows_purged,           ///< info: what was older than its retention is gone
  purge_failed,          ///< warning: the first failure in a row; it is tried again
  job_completed,         ///< debug
  job_snoozed,           ///< debug: its handler wants it later; no attempt was used
  job_cancelled,         ///< info: a person asked for it
  job_released,          ///< info: given back unfinished, due at once; no attempt was used
  hooks_dropped,         ///< warning: too many hooks in a row; this job has none
  worker_died,           ///< error: whoever ran a job is gone without a result; numbers only
  result_conflict,       ///< error: one dispatch with two different results; the first stays
  heartbeat_failed,      ///< warning: the first failure in a row; it is tried again
  heartbeat_recovered,   ///< info
  worker_isolated,       ///< error: no heartbeat for so long that running jobs are ended
  worker_declared_dead,  ///< error: others have given its jobs away; it starts over as a new worker
  worker_quiet,          ///< info: it takes nothing more and finishes what it has
  worker_stopping,       ///< info: it has asked its jobs to stop
  task_stale,            ///< warning: a broker gave out a task whose dispatch is over
  task_repeated,         ///< debug: a broker gave out a task twice; another attempt has it
  task_refused,          ///< warning: what a broker gave out is no task, or of another job
  source_failed,         ///< warning: the broker of a worker's tasks; one line per change of state
  source_recovered,      ///< info
  schedule_fired,        ///< info: a slot of a schedule has made its event
  schedule_missed,       ///< warning: slots are passed over; nobody was there to run them in time
  schedule_failed,       ///< warning: the first failure in a row of one schedule; it is tried again
};

[[nodiscard]] std::string_view to_string(NoticeKind kind) noexcept;
[[nodiscard]] std::string_view to_string(Severity severity) noexcept;
[[nodiscard]] Severity severity_of(NoticeKind kind) noexcept;

/// One thing that happened. Fields that do not apply are empty.
struct Notice {
  NoticeKind kind = NoticeKind::delivery_completed;
  std::string route;
  std::string job;
  std::string queue;
  std::string schedule;
  std::optional<Timestamp> slot_at;  ///< of the schedule
  std::optional<EventId> event_id;
  std::optional<Seq> event_seq;
  std::string event_type;
  std::optional<DeliveryId> delivery_id;
  std::optional<DispatchId> dispatch_id;
  std::optional<DeliveryStatus> status;
  std::optional<int> attempts;
  std::optional<milliseconds> wait;  ///< until the next try
  std::optional<Partition> partition;
  std::optional<int> crashes;        ///< how often in a row owners of the partition have died
  std::optional<std::int64_t> rows;  ///< how many were deleted, or slots passed over
  std::string code;                  ///< safe reason code
  std::string detail;                ///< safe text for people
};

}  // namespace postrider
