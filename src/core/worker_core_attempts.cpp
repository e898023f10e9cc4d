// Attempts and their ends: from a task to what is recorded of it.
#include <algorithm>
#include <utility>

#include "core/job_notices.hpp"
#include "core/job_verdict.hpp"
#include "core/worker_core.hpp"

namespace postrider::core {
namespace {

// Numbers of POSIX.
constexpr int kill_signal = 9;
constexpr int terminate_signal = 15;
// What a shell makes of a command that ended by a signal.
constexpr int shell_signal_base = 128;

}  // namespace

void WorkerCore::take_up(Task task, Instant asked_at, bool start) {
  const auto dispatch = task.dispatch_id;
  if (attempts_.contains(dispatch)) return;
  const auto deadline = asked_at + task.until_timeout;
  if (const auto end = end_before_start(task, deadline, start)) {
    decide(task.job, notice_about(task), *end);
    return;
  }
  Attempt attempt;
  attempt.job = task.job;
  attempt.about = notice_about(task);
  attempt.deadline = deadline;
  set_timer(attempts_.emplace(dispatch, std::move(attempt)).first);
  actions_.emplace_back(worker_action::Start{std::move(task)});
}

std::optional<AttemptEnd> WorkerCore::end_before_start(const Task& task, Instant deadline,
                                                       bool start) const {
  const bool no_room = attempts_.size() >= slots_;
  if (!start || no_room || task.job.cancel_requested) return Interrupted{};
  if (deadline <= now_) return TimedOut{};
  if (!task.malformed.empty()) {
    return JobOutcome{JobOutcome::Kind::fail, std::string(job_code::undecodable), task.malformed,
                      std::nullopt};
  }
  return std::nullopt;
}

void WorkerCore::on(worker_input::Ended& ended) {
  const auto found = attempts_.find(ended.dispatch_id);
  if (found == attempts_.end()) return;
  const auto attempt = std::move(found->second);
  if (attempt.timer) timers_.erase({*attempt.timer, ended.dispatch_id});
  attempts_.erase(found);
  const auto end = end_of(attempt, std::move(ended.end));
  const bool reported = std::holds_alternative<JobOutcome>(end);
  if (attempt.decided) {
    if (reported) on_late_end(attempt);
  } else if (reported || !attempt.lost) {
    decide(attempt.job, attempt.about, end);
  } else {
    tickets_.release(ended.dispatch_id);
  }
}

AttemptEnd WorkerCore::end_of(const Attempt& attempt, AttemptEnd reported) {
  const auto* death = std::get_if<WorkerDeath>(&reported);
  if (death != nullptr && died_by_us(attempt, *death)) return Interrupted{};
  if (obeyed(attempt, reported)) return Interrupted{};
  return reported;
}

// It says that it stopped because it was asked to; no person has cancelled the job.
bool WorkerCore::obeyed(const Attempt& attempt, const AttemptEnd& reported) {
  const auto* outcome = std::get_if<JobOutcome>(&reported);
  return outcome != nullptr && outcome->kind == JobOutcome::Kind::cancelled && attempt.stop_asked &&
         !attempt.job.cancel_requested;
}

bool WorkerCore::died_by_us(const Attempt& attempt, const WorkerDeath& death) {
  if (death.out_of_memory) return false;
  if (attempt.killed && death.signal == kill_signal) return true;
  return attempt.stop_asked && (death.signal == terminate_signal ||
                                death.exit_code == shell_signal_base + terminate_signal);
}

void WorkerCore::decide(const Job& job, const Notice& about, const AttemptEnd& end) {
  End decided;
  decided.update = judge_job(job, *about.dispatch_id, end, info_.id);
  decided.about = about;
  const auto* outcome = std::get_if<JobOutcome>(&end);
  if (outcome != nullptr && outcome->kind == JobOutcome::Kind::snooze) {
    decided.kind = EndKind::snoozed;
  } else if (std::holds_alternative<WorkerDeath>(end)) {
    decided.kind = EndKind::died;
  } else if (std::holds_alternative<Interrupted>(end)) {
    decided.kind = is_stopping() ? EndKind::released_by_stop : EndKind::released;
  }
  ends_.push_back(std::move(decided));
}

void WorkerCore::decide_running(Attempts::iterator attempt, const AttemptEnd& end) {
  decide(attempt->second.job, attempt->second.about, end);
  attempt->second.decided = true;
  set_timer(attempt);
}

// It was ended here before it reported. One warning for one dispatch, whichever comes first: this,
// or the store's answer to what was decided instead.
void WorkerCore::on_late_end(const Attempt& attempt) {
  if (attempt.told) return;
  tell_stale(attempt.about);
  const auto mark = [&](End& end) {
    end.told |= end.update.dispatch_id == attempt.about.dispatch_id;
  };
  std::for_each(ends_.begin(), ends_.end(), mark);
  std::for_each(recording_.begin(), recording_.end(), mark);
}

// ---- ending what runs

void WorkerCore::ask_to_stop(Attempts::iterator attempt, milliseconds kill_after) {
  auto& asked = attempt->second;
  if (!std::exchange(asked.stop_asked, true)) {
    actions_.emplace_back(worker_action::RequestStop{attempt->first});
  }
  if (can_kill_ && !asked.killed) {
    asked.kill_at = std::min(now_ + kill_after, asked.kill_at.value_or(Instant::max()));
  }
  set_timer(attempt);
}

void WorkerCore::ask_all_to_stop(milliseconds kill_after) {
  for (auto attempt = attempts_.begin(); attempt != attempts_.end(); ++attempt)
    ask_to_stop(attempt, kill_after);
}

void WorkerCore::kill(Attempts::iterator attempt) {
  attempt->second.killed = true;
  attempt->second.kill_at.reset();
  actions_.emplace_back(worker_action::Kill{attempt->first});
  set_timer(attempt);
}

void WorkerCore::lose(Attempts::iterator attempt) {
  attempt->second.lost = true;
  ask_to_stop(attempt, options_.kill_grace);
}

void WorkerCore::enforce_times() {
  while (!timers_.empty() && timers_.begin()->first <= now_)
    enforce(attempts_.find(timers_.begin()->second));
}

void WorkerCore::enforce(Attempts::iterator attempt) {
  auto& timed = attempt->second;
  const bool current = !timed.decided && !timed.lost;
  if (current && timed.deadline <= now_) {
    decide_running(attempt, TimedOut{});
    ask_to_stop(attempt, options_.kill_grace);
  }
  if (timed.kill_at && *timed.kill_at <= now_) kill(attempt);
}

void WorkerCore::set_timer(Attempts::iterator attempt) {
  auto& timed = attempt->second;
  std::optional<Instant> timer = timed.kill_at;
  if (!timed.decided && !timed.lost) {
    timer = std::min(timed.deadline, timed.kill_at.value_or(Instant::max()));
  }
  if (timer == timed.timer) return;
  if (timed.timer) timers_.erase({*timed.timer, attempt->first});
  if (timer) timers_.emplace(*timer, attempt->first);
  timed.timer = timer;
}

// ---- what the store says to an end

void WorkerCore::take_answer(const End& end, RecordAnswer answer) {
  if (answer != RecordAnswer::cancel_requested) tickets_.release(end.update.dispatch_id);
  switch (answer) {
    case RecordAnswer::recorded:
    case RecordAnswer::repeated:
      return on_accepted(end);
    case RecordAnswer::conflict: {
      ++report_.stale;
      auto notice = end.about;
      notice.kind = NoticeKind::result_conflict;
      notice.detail = "this dispatch has another result already, which stays";
      return notify(std::move(notice));
    }
    case RecordAnswer::cancel_requested: {
      auto cancelled = end;
      cancelled.update = cancelled_instead(std::move(cancelled.update));
      ends_.push_front(std::move(cancelled));
      return;
    }
    case RecordAnswer::stale:
      break;
  }
  if (end.told) return;
  const auto running = attempts_.find(end.update.dispatch_id);
  if (running != attempts_.end()) running->second.told = true;
  tell_stale(end.about);
}

void WorkerCore::on_accepted(const End& end) {
  auto notice = notice_of_end(end.about, end.update);
  switch (end.update.status) {
    case DeliveryStatus::completed:
      ++report_.completed;
      break;
    case DeliveryStatus::cancelled:
      ++report_.cancelled;
      break;
    case DeliveryStatus::pending:
      notice.kind = count_pending(end.kind);
      break;
    default:
      ++report_.failed;
  }
  if (end.kind == EndKind::died) {
    ++report_.deaths;
    notice.kind = NoticeKind::worker_died;
  }
  notify(std::move(notice));
}

NoticeKind WorkerCore::count_pending(EndKind kind) {
  switch (kind) {
    case EndKind::snoozed:
      ++report_.snoozed;
      return NoticeKind::job_snoozed;
    case EndKind::released_by_stop:
      ++report_.released;
      return NoticeKind::job_released;
    case EndKind::released:
      return NoticeKind::job_released;
    case EndKind::reported:
    case EndKind::died:
      break;
  }
  ++report_.retried;
  return NoticeKind::retry_scheduled;
}

void WorkerCore::tell_stale(const Notice& about) {
  ++report_.stale;
  auto notice = about;
  notice.kind = NoticeKind::result_stale;
  notice.detail = "the attempt was over before this result; it changes nothing";
  notify(std::move(notice));
}

void WorkerCore::tell(NoticeKind kind, std::string detail, std::string_view code) {
  Notice notice;
  notice.kind = kind;
  notice.code = code;
  notice.detail = std::move(detail);
  notify(std::move(notice));
}

std::vector<DispatchId> WorkerCore::current_attempts() const {
  std::vector<DispatchId> current;
  for (const auto& [dispatch, attempt] : attempts_)
    if (!attempt.decided && !attempt.lost) current.push_back(dispatch);
  return current;
}

}  // namespace postrider::core
