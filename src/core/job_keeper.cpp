#include "core/job_keeper.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/assert.hpp"
#include "core/job_notices.hpp"
#include "core/job_verdict.hpp"

namespace postrider::core {

JobKeeper::JobKeeper(KeeperOptions options, std::vector<Route> routes, Random& random)
    : options_(options), store_backoff_(least_backoff, most_backoff, random) {
  const CircuitPolicy policy{options.probe_least, options.probe_most};
  routes_.reserve(routes.size());
  for (auto& route : routes)
    routes_.push_back({std::move(route), Circuit(policy, random)});
}

std::vector<KeeperAction> JobKeeper::step(KeeperInput input, Instant now) {
  now_ = now;
  std::visit([this](auto& given) { on(given); }, input);
  plan();
  return std::exchange(actions_, {});
}

std::optional<Instant> JobKeeper::wake_at() const {
  if (!running_ || stopping_ || call_ != StoreCall::none) return std::nullopt;
  auto at = lost_at_;
  for (const auto& route : routes_) {
    if (route.in_flight < route.route.window) at = std::min(at, next_look(route));
  }
  if (!ends_.empty()) at = now_;
  return std::max(at, store_at_);
}

void JobKeeper::on(keeper_input::Begin& begin) {
  POSTRIDER_ASSERT(!running_);
  running_ = true;
  continuous_ = begin.continuous;
  stopping_ = false;
  lost_looked_ = false;
  lost_at_ = now_;
  for (auto& route : routes_) {
    route.looked = false;
    route.look_at = now_;
  }
}

void JobKeeper::on(keeper_input::Woken&) {
  for (auto& route : routes_)
    route.look_at = now_;
}

void JobKeeper::on(keeper_input::Stop&) {
  stopping_ = true;
}

void JobKeeper::on(keeper_input::Found& found) {
  call_ = StoreCall::none;
  store_backoff_.reset();
  for (const auto& lost : found.batch.attempts) {
    if (lost.worker_died) {
      decide(lost.job, lost.dispatch_id, WorkerDeath{}, lost.worker);
    } else {
      decide(lost.job, lost.dispatch_id, TimedOut{}, lost.worker);
    }
  }
  lost_looked_ = !found.batch.more;
  lost_at_ = found.batch.more ? now_ : now_ + options_.period;
}

void JobKeeper::on(keeper_input::HandedOut& handed_out) {
  call_ = StoreCall::none;
  store_backoff_.reset();
  auto& route = routes_[handing_out_];
  const auto& batch = handed_out.batch;
  route.looked = !batch.more;
  const auto wait = std::min(batch.next_in.value_or(options_.period), options_.period);
  route.look_at = batch.more ? now_ : now_ + wait;
  send(handing_out_, std::move(handed_out.batch.tasks));
}

void JobKeeper::on(keeper_input::Recorded& recorded) {
  call_ = StoreCall::none;
  store_backoff_.reset();
  auto ends = std::exchange(recording_, {});
  POSTRIDER_ASSERT(ends.size() == recorded.answers.size());
  for (std::size_t i = 0; i < ends.size(); ++i)
    take_answer(ends[i], recorded.answers[i]);
}

// What was found is found again, and a hand-out whose answer was lost is overdue one day; ends that
// were judged here are recorded again, which is harmless.
void JobKeeper::on(keeper_input::StoreFailed& failed) {
  call_ = StoreCall::none;
  ends_.insert(ends_.begin(), std::make_move_iterator(recording_.begin()),
               std::make_move_iterator(recording_.end()));
  recording_.clear();
  store_at_ = now_ + store_backoff_.next();
  if (continuous_ && failed.error.disposition != Disposition::stop && !stopping_) return;
  running_ = false;
  actions_.emplace_back(keeper_action::Done{std::move(failed.error)});
}

void JobKeeper::on(keeper_input::Outcomes& outcomes) {
  for (const auto& answered : outcomes.outcomes)
    take_outcome(answered);
}

// Its lane answers nothing any more; what it had was perhaps sent.
void JobKeeper::on(keeper_input::PublisherFailed& failed) {
  auto& route = routes_[failed.route];
  note_circuit(route, route.circuit.on_outage(now_, std::string(to_string(failed.error.code))));
  for (auto attempt = attempts_.begin(); attempt != attempts_.end();) {
    if (attempt->second.route != failed.route) {
      ++attempt;
      continue;
    }
    take_back(attempt->second, to_string(failed.error.code));
    attempt = attempts_.erase(attempt);
  }
  route.in_flight = 0;
}

// Perhaps they arrive yet: what a worker has started by then is not taken back.
void JobKeeper::on(keeper_input::GiveUp&) {
  POSTRIDER_ASSERT(stopping_);
  for (const auto& [id, attempt] : attempts_)
    take_back(attempt, job_code::interrupted);
  attempts_.clear();
  for (auto& route : routes_)
    route.in_flight = 0;
}

void JobKeeper::send(std::size_t index, std::vector<Task> tasks) {
  if (tasks.empty()) return;
  auto& route = routes_[index];
  std::vector<Message> messages;
  messages.reserve(tasks.size());
  for (auto& task : tasks) {
    const AttemptId attempt(++last_attempt_);
    messages.push_back(task_message(task, attempt, hand_over_timeout));
    attempts_.emplace(attempt, Attempt{index, std::move(task.job), task.dispatch_id});
  }
  route.in_flight += messages.size();
  route.circuit.on_submitted();
  actions_.emplace_back(keeper_action::Submit{index, std::move(messages)});
}

void JobKeeper::take_outcome(const MessageOutcome& answered) {
  const auto found = attempts_.find(answered.attempt);
  if (found == attempts_.end()) return;
  const auto attempt = std::move(found->second);
  attempts_.erase(found);
  auto& route = routes_[attempt.route];
  --route.in_flight;
  const auto& outcome = answered.outcome;
  switch (outcome.kind) {
    case OutcomeKind::confirmed:
      return note_circuit(route, route.circuit.on_confirmed());
    case OutcomeKind::refused:
    case OutcomeKind::rejected:
    case OutcomeKind::gone:
      decide(attempt.job, attempt.dispatch_id, SendRefused{outcome.code, outcome.detail});
      return note_circuit(route, route.circuit.on_failed(now_));
    case OutcomeKind::unknown:
      take_back(attempt, outcome.code);
      if (!outcome.connection_lost) return note_circuit(route, route.circuit.on_failed(now_));
      return note_circuit(route, route.circuit.on_outage(now_, outcome.code));
    case OutcomeKind::unavailable:
      take_back(attempt, outcome.code);
      return note_circuit(route, route.circuit.on_outage(now_, outcome.code));
    case OutcomeKind::throttled:
      take_back(attempt, outcome.code);
      return note_circuit(route, route.circuit.on_throttled(now_, outcome.after));
  }
}

void JobKeeper::decide(const Job& job, const DispatchId& dispatch, const AttemptEnd& end,
                       const std::optional<WorkerId>& worker) {
  ends_.push_back({judge_job(job, dispatch, end, worker), notice_about(job, dispatch),
                   std::holds_alternative<WorkerDeath>(end)});
}

// The destination was at fault, so no attempt is used. A worker that has the task all the same
// keeps it.
void JobKeeper::take_back(const Attempt& attempt, std::string_view code) {
  decide(attempt.job, attempt.dispatch_id, Interrupted{});
  auto& update = ends_.back().update;
  update.unless_started = true;
  update.interruptions = attempt.job.interruptions;
  update.failure_code = code;
  update.failure_detail = "not handed over: its queue could not be reached";
}

// Else somebody was faster: another keeper, or the worker itself.
void JobKeeper::take_answer(End& end, RecordAnswer answer) {
  if (answer == RecordAnswer::cancel_requested) {
    end.update = cancelled_instead(std::move(end.update));
    ends_.push_back(std::move(end));
  }
  if (answer != RecordAnswer::recorded) return;
  auto notice = notice_of_end(std::move(end.about), end.update);
  if (end.died) notice.kind = NoticeKind::worker_died;
  notify(std::move(notice));
}

// ---- what to do next

void JobKeeper::plan() {
  if (!running_) return;
  if (call_ == StoreCall::none && now_ >= store_at_) {
    (void)(ask_record() || ask_find_lost() || ask_hand_out());
  }
  finish_if_over();
}

bool JobKeeper::ask_record() {
  if (ends_.empty()) return false;
  const auto count = std::min(ends_.size(), most_per_call);
  const auto last = ends_.begin() + static_cast<std::ptrdiff_t>(count);
  recording_.assign(std::make_move_iterator(ends_.begin()), std::make_move_iterator(last));
  ends_.erase(ends_.begin(), last);
  keeper_action::Record record;
  for (const auto& end : recording_)
    record.request.updates.push_back(end.update);
  call_ = StoreCall::record;
  actions_.emplace_back(std::move(record));
  return true;
}

bool JobKeeper::ask_find_lost() {
  if (stopping_ || now_ < lost_at_ || (!continuous_ && lost_looked_)) return false;
  call_ = StoreCall::find_lost;
  actions_.emplace_back(keeper_action::FindLost{{options_.dead_after, most_per_call, {}}});
  return true;
}

bool JobKeeper::ask_hand_out() {
  if (stopping_) return false;
  const auto index = next_route();
  if (!index) return false;
  const auto& route = routes_[*index];
  handing_out_ = *index;
  turn_ = *index + 1;
  call_ = StoreCall::hand_out;
  const auto limit = std::min(allowance(route), most_per_call);
  actions_.emplace_back(keeper_action::HandOut{{{route.route.name}, limit, {}}});
  return true;
}

// Each in its turn, so that a busy route starves no other.
std::optional<std::size_t> JobKeeper::next_route() const {
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    const auto index = (turn_ + i) % routes_.size();
    const auto& route = routes_[index];
    if (!continuous_ && route.looked) continue;
    if (allowance(route) > 0 && now_ >= route.look_at) return index;
  }
  return std::nullopt;
}

std::size_t JobKeeper::allowance(const BrokerRoute& route) const {
  return route.circuit.allowance(now_, route.in_flight, route.route.window);
}

Instant JobKeeper::next_look(const BrokerRoute& route) const {
  return route.circuit.paused() ? std::max(route.look_at, route.circuit.probe_at()) : route.look_at;
}

void JobKeeper::finish_if_over() {
  if (call_ != StoreCall::none || !ends_.empty() || !attempts_.empty()) return;
  const bool looked = lost_looked_ && std::all_of(routes_.begin(), routes_.end(), [&](auto& one) {
                        return one.looked || allowance(one) == 0;
                      });
  if (!stopping_ && (continuous_ || !looked)) return;
  running_ = false;
  actions_.emplace_back(keeper_action::Done{});
}

void JobKeeper::note_circuit(const BrokerRoute& route, Circuit::Change change) {
  if (change == Circuit::Change::none) return;
  Notice notice;
  notice.kind =
      change == Circuit::Change::paused ? NoticeKind::route_paused : NoticeKind::route_resumed;
  notice.route = route.route.name;
  notice.code = route.circuit.reason();
  notify(std::move(notice));
}

// ---- the message

Message task_message(const Task& task, AttemptId attempt, milliseconds timeout) {
  const auto& job = task.job;
  auto event = std::make_shared<Event>();
  event->seq = job.event_seq;
  event->id = EventId(task.dispatch_id.value());
  event->type = job.job;
  event->created_at = task.event ? task.event->created_at : Timestamp();
  event->payload = R"({"outbox_event_id":")" + job.event_id.value().to_string() +
                   R"(","outbox_delivery_id":")" + job.delivery_id.value().to_string() +
                   R"(","outbox_dispatch_id":")" + task.dispatch_id.value().to_string() +
                   R"(","outbox_last_attempt":)" + (job.last_attempt() ? "true" : "false") + "}";
  return {attempt, std::move(event), task.dispatch_id, timeout};
}

}  // namespace postrider::core
