// Inputs: what a step changes before the next actions are planned.
#include "core/worker_core.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.hpp"

namespace postrider::core {

WorkerCore::WorkerCore(WorkerInfo info, WorkerOptions options, Abilities abilities,
                       IdGenerator& ids, Random& random)
    : info_(std::move(info)),
      options_(std::move(options)),
      slots_(std::min(abilities.slots, options_.concurrency)),
      can_kill_(abilities.can_kill),
      calls_overlap_(abilities.calls_overlap),
      ids_(&ids),
      take_plan_(options_.queues, options_.poll),
      takes_{{least_backoff, most_store_backoff, random}},
      records_{{least_backoff, most_store_backoff, random}},
      source_backoff_(least_backoff, most_source_backoff, random),
      starts_{{least_backoff, most_store_backoff, random}},
      beat_backoff_(std::min(least_backoff, options_.heartbeat), options_.heartbeat, random) {
  POSTRIDER_ASSERT(slots_ > 0);
}

std::vector<WorkerAction> WorkerCore::step(WorkerInput input, Instant now) {
  std::vector<WorkerInput> inputs;
  inputs.push_back(std::move(input));
  return step(std::move(inputs), now);
}

std::vector<WorkerAction> WorkerCore::step(std::vector<WorkerInput> inputs, Instant now) {
  now_ = now;
  for (auto& input : inputs)
    if (!done()) std::visit([&](auto& given) { on(given); }, input);
  if (phase_ != Phase::idle && !done()) plan();
  return std::exchange(actions_, {});
}

void WorkerCore::on(worker_input::Begin& begin) {
  POSTRIDER_ASSERT(phase_ == Phase::idle);
  if (begin.source) source_ = Source::closed;
  phase_ = Phase::running;
  info_.state = WorkerState::running;
  beat_at_ = now_;
  takes_.at = records_.at = now_;
  if (stop_early_) become_quiet();
}

void WorkerCore::on(worker_input::Tick&) {}

void WorkerCore::on(worker_input::Woken&) {
  take_plan_.wake(now_);
}

void WorkerCore::on(worker_input::Stop&) {
  if (phase_ == Phase::idle) {
    stop_early_ = true;
  } else if (phase_ == Phase::running) {
    become_quiet();
  } else if (phase_ == Phase::quiet) {
    become_stopping();
  }
}

// What arrives after the stop was asked for is still run, for as long as the grace lasts: to give
// it back would cost a dispatch.
void WorkerCore::on(worker_input::Taken& taken) {
  POSTRIDER_ASSERT(takes_.open);
  taking_ = 0;
  call_succeeded(takes_);
  take_plan_.on_taken(taken.batch, now_);
  const bool ours = taking_as_ == info_.id && last_beat_ && now_ < isolated_at();
  const bool start = ours && phase_ <= Phase::quiet;
  for (auto& task : taken.batch.tasks)
    take_up(std::move(task), taken.asked_at, start);
}

// An end may let the next job of its serial key go, or make its own job due again.
void WorkerCore::on(worker_input::Recorded& recorded) {
  POSTRIDER_ASSERT(records_.open && recorded.answers.size() == recording_.size());
  call_succeeded(records_);
  one_by_one_ -= std::min(one_by_one_, recording_.size());
  const auto ends = std::exchange(recording_, {});
  for (std::size_t i = 0; i < ends.size(); ++i)
    take_answer(ends[i], recorded.answers[i]);
  take_plan_.wake(now_);
}

void WorkerCore::on(worker_input::TakeFailed& failed) {
  POSTRIDER_ASSERT(takes_.open);
  taking_ = 0;
  take_plan_.on_failed();
  call_failed(takes_, failed.error);
}

void WorkerCore::on(worker_input::RecordFailed& failed) {
  POSTRIDER_ASSERT(records_.open);
  if (failed.error.disposition == Disposition::reject) {
    call_succeeded(records_);
    on_end_refused(failed.error);
  } else {
    on_record_failed(failed.error);
  }
}

// They are recorded again, whether they were applied or not: the same end twice is harmless. Once a
// stop has no more time, their deadlines will tell.
void WorkerCore::on_record_failed(const Error& error) {
  call_failed(records_, error);
  if (is_stopping() && now_ >= record_until_) {
    report_.unrecorded += recording_.size();
    recording_.clear();
    return;
  }
  ends_.insert(ends_.begin(), std::make_move_iterator(recording_.begin()),
               std::make_move_iterator(recording_.end()));
  recording_.clear();
}

// One that will never be accepted must not hold up the others.
void WorkerCore::on_end_refused(const Error& error) {
  if (recording_.size() > 1) {
    one_by_one_ = recording_.size();
    ends_.insert(ends_.begin(), std::make_move_iterator(recording_.begin()),
                 std::make_move_iterator(recording_.end()));
  } else {
    one_by_one_ -= std::min<std::size_t>(one_by_one_, 1);
    ++report_.unrecorded;
    tickets_.release(recording_.front().update.dispatch_id);
    auto notice = recording_.front().about;
    notice.kind = NoticeKind::store_failed;
    notice.code = to_string(error.code);
    notice.detail =
        "this end cannot be recorded, its deadline will end the attempt: " + error.message;
    notify(std::move(notice));
  }
  recording_.clear();
}

void WorkerCore::on(worker_input::Beaten& beaten) {
  POSTRIDER_ASSERT(beat_open_);
  beat_open_ = false;
  if (beat_backoff_.failing()) tell(NoticeKind::heartbeat_recovered, "worker " + info_.name);
  beat_backoff_.reset();
  signed_off_ = signing_off_;
  starts_await_beat_ = false;
  if (!beaten.answer.known) return on_declared_dead();
  last_beat_ = beaten.asked_at;
  isolated_ = false;
  for (const auto& dispatch : beaten.answer.lost)
    if (const auto found = attempts_.find(dispatch); found != attempts_.end()) lose(found);
  for (const auto& dispatch : beaten.answer.cancelled) {
    const auto found = attempts_.find(dispatch);
    if (found == attempts_.end() || found->second.job.cancel_requested) continue;
    found->second.job.cancel_requested = true;
    ask_to_stop(found, options_.kill_grace);
  }
}

// Others have given away what this start was running. It goes on as another one, or not at all.
void WorkerCore::on_declared_dead() {
  tell(NoticeKind::worker_declared_dead,
       std::to_string(attempts_.size()) +
           " running jobs are given away; look whether this process was frozen or its database "
           "out of reach for longer than dead_after");
  for (auto attempt = attempts_.begin(); attempt != attempts_.end(); ++attempt) {
    lose(attempt);
    if (can_kill_ && !attempt->second.killed) kill(attempt);
  }
  if (is_stopping()) {
    signed_off_ = true;
    return;
  }
  const bool at_once = last_beat_.has_value();
  last_beat_.reset();
  isolated_ = false;
  info_.id = WorkerId(ids_->next());
  beat_at_ = at_once ? now_ : now_ + options_.heartbeat;
}

void WorkerCore::on(worker_input::BeatFailed& failed) {
  POSTRIDER_ASSERT(beat_open_);
  beat_open_ = false;
  signed_off_ = signing_off_;  // said or not: nothing depends on it
  if (!beat_backoff_.failing()) {
    tell(NoticeKind::heartbeat_failed, failed.error.message, to_string(failed.error.code));
  }
  beat_at_ = std::min(beat_at_, now_ + beat_backoff_.next());
  if (failed.error.disposition == Disposition::stop) give_up(failed.error);
}

void WorkerCore::on(worker_input::Extended& extended) {
  const auto found = attempts_.find(extended.dispatch_id);
  if (found == attempts_.end()) return;
  found->second.deadline = extended.asked_at + extended.until_timeout;
  set_timer(found);
}

// One line per change: the store fails while one of its calls does.
void WorkerCore::call_succeeded(Calls& calls) {
  const bool failed_before = store_fails();
  calls.open = false;
  calls.backoff.reset();
  calls.at = now_;
  calls.gathers_until = now_ + gather_time;
  if (failed_before && !store_fails()) tell(NoticeKind::store_recovered, "worker " + info_.name);
}

void WorkerCore::call_failed(Calls& calls, const Error& error) {
  if (!store_fails()) tell(NoticeKind::store_failed, error.message, to_string(error.code));
  calls.open = false;
  calls.at = now_ + calls.backoff.next();
  if (is_stopping()) calls.at = std::min(calls.at, std::max(now_, record_until_));
  if (error.disposition == Disposition::stop) give_up(error);
}

bool WorkerCore::store_fails() const noexcept {
  return takes_.backoff.failing() || records_.backoff.failing() || starts_.backoff.failing();
}

// A person has to act: it ends as if it had been asked to.
void WorkerCore::give_up(const Error& error) {
  if (!error_) error_ = error;
  if (phase_ == Phase::running) become_quiet();
}

}  // namespace postrider::core
