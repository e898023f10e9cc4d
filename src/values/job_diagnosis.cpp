#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <postrider/diagnosis.hpp>

namespace postrider {
namespace {

using Severity = FindingSeverity;

/// Older than this, a due job waits for more than a busy worker or the next start of one.
constexpr milliseconds unattended_job = std::chrono::minutes(1);
/// Twelve heartbeats by default: more than a slow database explains.
constexpr milliseconds silent_worker = std::chrono::minutes(1);

std::string seconds_text(milliseconds duration) {
  return fmt::format("{} s", duration.count() / 1000);
}

/// All jobs of one queue.
struct QueueWork {
  std::int64_t due = 0;
  std::int64_t overdue = 0;
  milliseconds oldest_due_age{0};
};

std::map<std::string, QueueWork> work_by_queue(const JobStatus& status) {
  std::map<std::string, QueueWork> queues;
  for (const auto& counts : status.jobs) {
    auto& work = queues[counts.queue];
    work.due += counts.due;
    work.overdue += counts.overdue;
    work.oldest_due_age =
        std::max(work.oldest_due_age, counts.oldest_due_age.value_or(milliseconds(0)));
  }
  return queues;
}

const QueueState* paused_state(const JobStatus& status, const std::string& queue) {
  const auto found = std::find_if(status.queues.begin(), status.queues.end(), [&](const auto& one) {
    return one.queue == queue && one.paused_at;
  });
  return found == status.queues.end() ? nullptr : &*found;
}

/// One that is about to stop takes nothing more.
bool serves(const ListedWorker& worker, const std::string& queue) {
  const auto& queues = worker.info.queues;
  return worker.info.state == WorkerState::running && worker.last_seen_age <= silent_worker &&
         std::find(queues.begin(), queues.end(), queue) != queues.end();
}

void add_waiting(const JobStatus& status, const std::vector<ListedWorker>& workers,
                 const std::string& queue, const QueueWork& work, std::vector<Finding>& findings) {
  if (work.due == 0) return;
  if (const auto* const paused = paused_state(status, queue)) {
    findings.push_back({"queue_paused", Severity::note, "queue " + queue,
                        fmt::format("{} has paused the queue, and {} jobs of it are due.",
                                    paused->paused_by, work.due),
                        "Nothing is taken from it.",
                        "When it may go on: `postrider queue resume`."});
    return;
  }
  if (work.oldest_due_age <= unattended_job) return;
  const bool served = std::any_of(workers.begin(), workers.end(),
                                  [&](const auto& worker) { return serves(worker, queue); });
  if (served) return;
  findings.push_back(
      {"queue_without_worker", Severity::warning, "queue " + queue,
       fmt::format("{} jobs are due, the oldest for {}, and no live worker serves the queue.",
                   work.due, seconds_text(work.oldest_due_age)),
       "They wait until one does.",
       fmt::format(
           "Start `postrider worker --queue {}`, or compare the name with `postrider worker "
           "list`.",
           queue)});
}

void add_overdue(const std::string& queue, const QueueWork& work, std::vector<Finding>& findings) {
  if (work.overdue == 0) return;
  findings.push_back(
      {"jobs_overdue", Severity::warning, "queue " + queue,
       fmt::format("the deadline of {} running jobs has passed.", work.overdue),
       "They are tried again only when their worker, or a relay that loops, has ended them.",
       "If they stay: start `postrider relay --loop`, and see `postrider worker list`."});
}

void add_silent(const ListedWorker& worker, std::vector<Finding>& findings) {
  const auto state = worker.info.state;
  const bool lives = state != WorkerState::stopped && state != WorkerState::dead;
  if (!lives || worker.last_seen_age <= silent_worker) return;
  findings.push_back(
      {"worker_silent", Severity::warning,
       fmt::format("worker {} ({}, process {})", worker.info.name, worker.info.host,
                   worker.info.pid),
       fmt::format("its last heartbeat is {} old, and it has {} running jobs.",
                   seconds_text(worker.last_seen_age), worker.running),
       "Nobody has declared it dead, so its jobs wait for their deadlines.",
       "Start `postrider relay --loop`, which declares it dead after `dead_after`; if the worker "
       "runs, look at its log."});
}

}  // namespace

std::vector<Finding> diagnose_jobs(const JobStatus& status,
                                   const std::vector<ListedWorker>& workers) {
  std::vector<Finding> findings;
  for (const auto& [queue, work] : work_by_queue(status)) {
    add_waiting(status, workers, queue, work, findings);
    add_overdue(queue, work, findings);
  }
  for (const auto& worker : workers)
    add_silent(worker, findings);
  return findings;
}

}  // namespace postrider
