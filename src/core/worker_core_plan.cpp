// What to do next: everything here looks at the state and asks for actions.
#include <algorithm>
#include <iterator>
#include <utility>

#include "core/worker_core.hpp"

namespace postrider::core {

void WorkerCore::plan() {
  enforce_times();
  watch_isolation();
  progress_stop();
  open_source();
  if (starts_first_) ask_starts();
  call_store();
  ask_starts();
  ask_beat();
  acknowledge();
  close_source();
  if (signed_off_ && nothing_runs() && all_is_recorded()) finish();
}

// ---- a worker that nobody hears of: others will give its jobs away, so it ends them before

Instant WorkerCore::isolated_at() const {
  return *last_beat_ + options_.dead_after - margin_periods * options_.heartbeat;
}

void WorkerCore::watch_isolation() {
  if (isolated_ || !last_beat_ || now_ < isolated_at()) return;
  isolated_ = true;
  const auto current = current_attempts().size();
  if (current == 0) return;
  tell(NoticeKind::worker_isolated,
       std::to_string(current) +
           " running jobs are ended, as others may start them again soon; look at the database");
  ask_all_to_stop(std::min(options_.kill_grace, options_.heartbeat));
}

// ---- stopping

void WorkerCore::become_quiet() {
  phase_ = Phase::quiet;
  info_.state = WorkerState::quiet;
  beat_at_ = now_;
  phase_until_ = now_ + options_.grace;
  record_until_ = phase_until_ + options_.hard_grace;
  tell(NoticeKind::worker_quiet, std::to_string(attempts_.size()) + " running jobs");
  stop_intake();
}

void WorkerCore::become_stopping() {
  phase_ = Phase::stopping;
  info_.state = WorkerState::stopping;
  beat_at_ = now_;
  phase_until_ = now_ + options_.hard_grace;
  record_until_ = phase_until_;
  records_.at = std::min(records_.at, record_until_);
  if (attempts_.empty()) return;
  tell(NoticeKind::worker_stopping, std::to_string(attempts_.size()) + " running jobs");
  for (auto attempt = attempts_.begin(); attempt != attempts_.end(); ++attempt)
    ask_to_stop(attempt, options_.hard_grace);
}

void WorkerCore::progress_stop() {
  if (attempts_.empty()) return;
  if (phase_ == Phase::quiet && now_ >= phase_until_) become_stopping();
  if (phase_ == Phase::stopping && now_ >= phase_until_) become_killing();
  if (kill_patience_is_over()) release_undecided();
}

// Another worker may start a job as soon as it is released, so those that are killed have to be
// gone first; what cannot be killed is not waited for.
void WorkerCore::become_killing() {
  phase_ = Phase::killing;
  phase_until_ = can_kill_ ? now_ + kill_patience : now_;
  if (!can_kill_) return;
  for (auto attempt = attempts_.begin(); attempt != attempts_.end(); ++attempt)
    if (!attempt->second.killed) kill(attempt);
}

bool WorkerCore::kill_patience_is_over() const {
  return phase_ == Phase::killing && now_ >= phase_until_;
}

void WorkerCore::release_undecided() {
  for (auto attempt = attempts_.begin(); attempt != attempts_.end(); ++attempt) {
    const bool current = !attempt->second.decided && !attempt->second.lost;
    if (current) decide_running(attempt, Interrupted{});
  }
}

// ---- the store

void WorkerCore::call_store() {
  const bool take_first = take_next_ && !calls_overlap_;
  if (take_first) ask_take();
  ask_record();
  ask_take();
}

// While ends cannot be recorded nothing is taken.
bool WorkerCore::records_first() const {
  return records_.backoff.failing() && unrecorded() > 0;
}

bool WorkerCore::may_call(const Calls& calls) const {
  return !is_busy(calls) && now_ >= call_at(calls);
}

Instant WorkerCore::call_at(const Calls& calls) const {
  const bool gathers = calls_overlap_ && !attempts_.empty();
  return gathers ? std::max(calls.at, calls.gathers_until) : calls.at;
}

bool WorkerCore::is_busy(const Calls& calls) const {
  return calls_overlap_ ? calls.open : takes_.open || records_.open;
}

void WorkerCore::ask_record() {
  if (ends_.empty() || !may_call(records_)) return;
  records_.open = true;
  take_next_ = true;
  const auto limit = one_by_one_ > 0 ? 1 : most_ends_per_record;
  const auto count = static_cast<std::ptrdiff_t>(std::min(ends_.size(), limit));
  recording_.assign(std::make_move_iterator(ends_.begin()),
                    std::make_move_iterator(ends_.begin() + count));
  ends_.erase(ends_.begin(), ends_.begin() + count);
  RecordRequest request;
  request.updates.reserve(recording_.size());
  for (const auto& end : recording_)
    request.updates.push_back(end.update);
  actions_.emplace_back(worker_action::Record{std::move(request)});
}

void WorkerCore::ask_take() {
  if (!may_take() || free_slots() == 0 || !may_call(takes_)) return;
  TakeRequest request;
  request.limit = slots_for_takes();
  request.queues = take_plan_.ask(request.limit, now_);
  if (request.queues.empty()) return;
  takes_.open = true;
  take_next_ = false;
  taking_ = request.limit;
  starts_first_ = true;
  taking_as_ = info_.id;
  request.worker = info_.id;
  request.ageing = options_.ageing;
  actions_.emplace_back(worker_action::Take{std::move(request)});
}

// Nothing is started that others may soon believe dead.
bool WorkerCore::may_take() const {
  return phase_ == Phase::running && last_beat_ && now_ < takes_until() && !records_first();
}

Instant WorkerCore::takes_until() const {
  return std::min(*last_beat_ + silent_periods * options_.heartbeat, isolated_at());
}

std::size_t WorkerCore::free_slots() const {
  const auto busy = attempts_.size() + taking_ + tickets_.asked();
  const auto held = busy + unrecorded();
  if (busy >= slots_ || held >= 2 * slots_) return 0;
  return std::min(slots_ - busy, 2 * slots_ - held);
}

// ---- heartbeats

void WorkerCore::ask_beat() {
  if (beat_open_ || signed_off_) return;
  if (is_stopping() && nothing_runs() && all_is_recorded()) {
    sign_off();
  } else if (now_ >= beat_at_) {
    beat();
  }
}

// One that never was heard of need not say that it goes.
void WorkerCore::sign_off() {
  info_.state = WorkerState::stopped;
  if (!last_beat_) {
    signed_off_ = true;
    return;
  }
  signing_off_ = true;
  beat();
}

void WorkerCore::beat() {
  beat_open_ = true;
  beat_at_ = now_ + options_.heartbeat;
  HeartbeatRequest request;
  request.worker = info_;
  request.running = current_attempts();
  actions_.emplace_back(worker_action::Beat{std::move(request)});
}

// ---- the end

bool WorkerCore::nothing_runs() const {
  return attempts_.empty() || kill_patience_is_over();
}

bool WorkerCore::all_is_recorded() const {
  return !takes_.open && !records_.open && unrecorded() == 0 && tickets_are_settled();
}

void WorkerCore::finish() {
  phase_ = Phase::done;
  actions_.emplace_back(
      worker_action::Done{std::exchange(report_, {}), std::exchange(error_, std::nullopt)});
}

// ---- time

std::optional<Instant> WorkerCore::wake_at() const {
  if (phase_ == Phase::idle || done()) return std::nullopt;
  std::optional<Instant> wake = store_wake_at();
  const auto consider = [&](Instant at) { wake = std::min(at, wake.value_or(at)); };
  if (!timers_.empty()) consider(timers_.begin()->first);
  if (const auto tickets = tickets_wake_at()) consider(*tickets);
  if (!beat_open_ && !signed_off_) consider(beat_at_);
  if (last_beat_ && !isolated_ && !attempts_.empty()) consider(isolated_at());
  if (is_stopping() && !nothing_runs()) consider(phase_until_);
  return wake;
}

std::optional<Instant> WorkerCore::store_wake_at() const {
  std::optional<Instant> wake;
  if (!ends_.empty() && !is_busy(records_)) wake = call_at(records_);
  if (is_busy(takes_) || !may_take() || free_slots() == 0) return wake;
  const auto look_at = std::max(call_at(takes_), take_plan_.next_at());
  return look_at < takes_until() ? std::min(look_at, wake.value_or(look_at)) : wake;
}

}  // namespace postrider::core
