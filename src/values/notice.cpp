#include <postrider/notice.hpp>

namespace postrider {

std::string_view to_string(NoticeKind kind) noexcept {
  switch (kind) {
    case NoticeKind::delivery_completed:
      return "delivery_completed";
    case NoticeKind::retry_scheduled:
      return "retry_scheduled";
    case NoticeKind::delivery_failed:
      return "delivery_failed";
    case NoticeKind::event_held:
      return "event_held";
    case NoticeKind::event_discarded:
      return "event_discarded";
    case NoticeKind::result_stale:
      return "result_stale";
    case NoticeKind::route_paused:
      return "route_paused";
    case NoticeKind::route_resumed:
      return "route_resumed";
    case NoticeKind::route_stopped:
      return "route_stopped";
    case NoticeKind::lease_gained:
      return "lease_gained";
    case NoticeKind::lease_lost:
      return "lease_lost";
    case NoticeKind::crashes_suspected:
      return "crashes_suspected";
    case NoticeKind::crashes_cleared:
      return "crashes_cleared";
    case NoticeKind::store_failed:
      return "store_failed";
    case NoticeKind::store_recovered:
      return "store_recovered";
    case NoticeKind::name_shared:
      return "name_shared";
    case NoticeKind::rows_purged:
      return "rows_purged";
    case NoticeKind::purge_failed:
      return "purge_failed";
    case NoticeKind::job_completed:
      return "job_completed";
    case NoticeKind::job_snoozed:
      return "job_snoozed";
    case NoticeKind::job_cancelled:
      return "job_cancelled";
    case NoticeKind::job_released:
      return "job_released";
    case NoticeKind::hooks_dropped:
      return "hooks_dropped";
    case NoticeKind::worker_died:
      return "worker_died";
    case NoticeKind::result_conflict:
      return "result_conflict";
    case NoticeKind::heartbeat_failed:
      return "heartbeat_failed";
    case NoticeKind::heartbeat_recovered:
      return "heartbeat_recovered";
    case NoticeKind::worker_isolated:
      return "worker_isolated";
    case NoticeKind::worker_declared_dead:
      return "worker_declared_dead";
    case NoticeKind::worker_quiet:
      return "worker_quiet";
    case NoticeKind::worker_stopping:
      return "worker_stopping";
    case NoticeKind::task_stale:
      return "task_stale";
    case NoticeKind::task_repeated:
      return "task_repeated";
    case NoticeKind::task_refused:
      return "task_refused";
    case NoticeKind::source_failed:
      return "source_failed";
    case NoticeKind::source_recovered:
      return "source_recovered";
    case NoticeKind::schedule_fired:
      return "schedule_fired";
    case NoticeKind::schedule_missed:
      return "schedule_missed";
    case NoticeKind::schedule_failed:
      return "schedule_failed";
  }
  return "delivery_completed";
}

std::string_view to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::debug:
      return "debug";
    case Severity::info:
      return "info";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
  }
  return "error";
}

Severity severity_of(NoticeKind kind) noexcept {
  switch (kind) {
    case NoticeKind::delivery_completed:
    case NoticeKind::job_completed:
    case NoticeKind::job_snoozed:
    case NoticeKind::task_repeated:
      return Severity::debug;
    case NoticeKind::event_discarded:
    case NoticeKind::route_resumed:
    case NoticeKind::lease_gained:
    case NoticeKind::crashes_cleared:
    case NoticeKind::store_recovered:
    case NoticeKind::rows_purged:
    case NoticeKind::job_cancelled:
    case NoticeKind::job_released:
    case NoticeKind::heartbeat_recovered:
    case NoticeKind::worker_quiet:
    case NoticeKind::worker_stopping:
    case NoticeKind::source_recovered:
    case NoticeKind::schedule_fired:
      return Severity::info;
    case NoticeKind::retry_scheduled:
    case NoticeKind::event_held:
    case NoticeKind::result_stale:
    case NoticeKind::route_paused:
    case NoticeKind::lease_lost:
    case NoticeKind::crashes_suspected:
    case NoticeKind::store_failed:
    case NoticeKind::name_shared:
    case NoticeKind::purge_failed:
    case NoticeKind::heartbeat_failed:
    case NoticeKind::task_stale:
    case NoticeKind::task_refused:
    case NoticeKind::source_failed:
    case NoticeKind::hooks_dropped:
    case NoticeKind::schedule_missed:
    case NoticeKind::schedule_failed:
      return Severity::warning;
    case NoticeKind::delivery_failed:
    case NoticeKind::route_stopped:
    case NoticeKind::worker_died:
    case NoticeKind::result_conflict:
    case NoticeKind::worker_isolated:
    case NoticeKind::worker_declared_dead:
      return Severity::error;
  }
  return Severity::error;
}

}  // namespace postrider
