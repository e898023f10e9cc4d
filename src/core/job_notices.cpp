#include "core/job_notices.hpp"

#include <utility>

namespace postrider::core {
namespace {

NoticeKind kind_of(DeliveryStatus status) {
  switch (status) {
    case DeliveryStatus::completed:
      return NoticeKind::job_completed;
    case DeliveryStatus::cancelled:
      return NoticeKind::job_cancelled;
    case DeliveryStatus::pending:
      return NoticeKind::retry_scheduled;
    default:
      return NoticeKind::delivery_failed;
  }
}

}  // namespace

Notice notice_about(const Job& job, const DispatchId& dispatch) {
  Notice notice;
  notice.route = job.route;
  notice.job = job.job;
  notice.queue = job.queue;
  notice.event_id = job.event_id;
  notice.event_seq = job.event_seq;
  notice.delivery_id = job.delivery_id;
  notice.dispatch_id = dispatch;
  return notice;
}

Notice notice_about(const Task& task) {
  auto notice = notice_about(task.job, task.dispatch_id);
  if (task.event) notice.event_type = task.event->type;
  return notice;
}

Notice notice_of_end(Notice about, const JobUpdate& update) {
  about.kind = kind_of(update.status);
  if (update.status == DeliveryStatus::pending) about.wait = update.available_in;
  about.status = update.status;
  about.attempts = update.attempts;
  about.code = update.failure_code;
  about.detail = update.failure_detail;
  return about;
}

}  // namespace postrider::core
