// What comes by a source of tasks: tickets are taken up, run as any attempt, and acknowledged.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "core/worker_core.hpp"

namespace postrider::core {
namespace {

// A connection that stood for so long was a good one: the next failure is the first in a row.
constexpr milliseconds steady_connection{10'000};

}  // namespace

// ---- the source

void WorkerCore::on(worker_input::SourceOpened&) {
  POSTRIDER_ASSERT(source_ == Source::opening);
  source_ = Source::open;
  source_has_worked_ = true;
  source_opened_at_ = now_;
  if (std::exchange(source_fails_, false)) {
    tell(NoticeKind::source_recovered, "worker " + info_.name);
  }
}

// What a person has to mend ends a worker whose source never worked; later it may be a restart.
void WorkerCore::on(worker_input::SourceFailed& failed) {
  tickets_.forget_connection();
  const bool was_steady = source_ == Source::open && now_ - source_opened_at_ >= steady_connection;
  if (was_steady) source_backoff_.reset();
  if (source_ != Source::ended) source_ = Source::closed;
  source_at_ = now_ + source_backoff_.next();
  if (!std::exchange(source_fails_, true)) {
    tell(NoticeKind::source_failed, failed.error.message, to_string(failed.error.code));
  }
  if (failed.error.disposition == Disposition::stop && !source_has_worked_) give_up(failed.error);
}

bool WorkerCore::source_is_wanted() const {
  return source_ == Source::closed && phase_ == Phase::running && last_beat_.has_value();
}

void WorkerCore::open_source() {
  if (!source_is_wanted() || now_ < source_at_) return;
  source_ = Source::opening;
  actions_.emplace_back(worker_action::OpenSource{prefetch()});
}

std::size_t WorkerCore::prefetch() const {
  return slots_ + std::min(slots_ / slots_per_spare_ticket, most_spare_tickets);
}

void WorkerCore::stop_intake() {
  tickets_.give_back_waiting();
  if (source_ != Source::open) return;
  source_ = Source::cancelled;
  actions_.emplace_back(worker_action::CancelSource{});
}

void WorkerCore::acknowledge() {
  auto tags = tickets_.take_acknowledgements();
  const bool connected = source_ == Source::open || source_ == Source::cancelled;
  if (connected && !tags.empty()) {
    actions_.emplace_back(worker_action::Acknowledge{std::move(tags)});
  }
}

// Early, as the broker gives out again what was not started.
void WorkerCore::close_source() {
  const bool connected = source_ == Source::open || source_ == Source::cancelled;
  if (!is_stopping() || !connected) return;
  if (tickets_.held() > 0 || !tickets_are_settled()) return;
  source_ = Source::ended;
  actions_.emplace_back(worker_action::CloseSource{});
}

// ---- tickets

// What comes in a stop was on its way; it goes back with the connection.
void WorkerCore::on(worker_input::Offered& offered) {
  for (const auto& refused : offered.batch.refused)
    tell_refused(refused);
  if (source_ != Source::open) return;
  for (auto& ticket : offered.batch.tickets)
    tickets_.offer(std::move(ticket));
}

void WorkerCore::tell_refused(const RefusedTasks& refused) {
  const auto* const are_off = refused.count == 1
                                  ? " message was no task and is off the queue: "
                                  : " messages were no tasks and are off the queue: ";
  tell(NoticeKind::task_refused,
       std::to_string(refused.count) + are_off + refused.reason + "; look who else sends there");
}

// How many may be asked for now, were it their time. A take that is due has its half kept for it,
// also while a record is in its way. In a stop only those are asked for that may run already
// without our knowledge, to give them back.
std::size_t WorkerCore::startable() const {
  if (starts_.open || starts_await_beat_) return 0;
  if (is_stopping()) return std::min(tickets_.doubtful(), most_starts_per_call);
  if (tickets_.waiting() == 0 || !may_take()) return 0;
  auto free = free_slots();
  const bool take_is_due = take_plan_.next_at() <= now_ && taking_ == 0;
  if (take_is_due) free = starts_first_ ? free - free / 2 : free / 2;
  return std::min(free, most_starts_per_call);
}

std::size_t WorkerCore::slots_for_takes() const {
  const auto free = free_slots();
  const bool both =
      tickets_.waiting() > 0 && !starts_.open && !starts_await_beat_ && now_ >= starts_.at;
  return both ? free - std::min(tickets_.waiting(), free / 2) : free;
}

void WorkerCore::ask_starts() {
  if (now_ < starts_.at) return;
  const auto most = startable();
  if (most == 0) return;
  starts_.open = true;
  starts_first_ = false;
  starting_as_ = info_.id;
  actions_.emplace_back(worker_action::StartTickets{tickets_.ask(most, info_.id)});
}

void WorkerCore::on(worker_input::TicketsStarted& started) {
  POSTRIDER_ASSERT(starts_.open && started.answers.size() <= tickets_.asked());
  for (auto& answer : started.answers)
    take_up_ticket(tickets_.next_answered(), answer);
  if (started.failure) {
    starts_failed(*started.failure);
  } else {
    call_succeeded(starts_);
  }
}

void WorkerCore::take_up_ticket(const Ticket& ticket,
                                worker_input::TicketsStarted::Answer& answer) {
  switch (answer.start.kind) {
    case StartAnswer::Kind::started: {
      tickets_.hold(ticket);
      const bool ours = starting_as_ == info_.id && last_beat_ && now_ < isolated_at();
      return take_up(std::move(answer.start.task).value(), answer.asked_at,
                     ours && phase_ <= Phase::quiet);
    }
    case StartAnswer::Kind::stale:
      return refuse_ticket(ticket, NoticeKind::task_stale,
                           "its dispatch is over; the task is dropped");
    case StartAnswer::Kind::taken:
      return refuse_ticket(ticket, NoticeKind::task_repeated,
                           "a worker has started this dispatch; the copy is dropped");
    case StartAnswer::Kind::wrong_job:
      return refuse_ticket(ticket, NoticeKind::task_refused,
                           "the delivery is of another job than the task says; the task is "
                           "dropped; look who else sends to this queue");
    case StartAnswer::Kind::worker_gone:
      return on_worker_gone(ticket);
  }
}

void WorkerCore::refuse_ticket(const Ticket& ticket, NoticeKind kind, std::string detail) {
  tickets_.acknowledge(ticket.tag);
  Notice notice;
  notice.kind = kind;
  notice.job = ticket.job;
  notice.delivery_id = ticket.delivery_id;
  notice.dispatch_id = ticket.dispatch_id;
  notice.detail = std::move(detail);
  notify(std::move(notice));
}

// The next heartbeat tells what became of this worker; the ticket waits for its successor.
void WorkerCore::on_worker_gone(Ticket ticket) {
  if (is_stopping()) return;
  tickets_.put_back(std::move(ticket));
  starts_await_beat_ = true;
  if (!beat_open_) beat_at_ = now_;
}

// The first that was not answered may have been started all the same: it is asked for again, so
// that it does not wait for its deadline.
void WorkerCore::starts_failed(const Error& error) {
  call_failed(starts_, error);
  tickets_.put_back_after_failure();
  if (!is_stopping()) return;
  tickets_.give_back_waiting();
  if (now_ >= record_until_) report_.unrecorded += tickets_.give_up_doubtful();
}

bool WorkerCore::tickets_are_settled() const {
  return !starts_.open && tickets_.doubtful() == 0;
}

std::optional<Instant> WorkerCore::tickets_wake_at() const {
  std::optional<Instant> wake;
  if (startable() > 0) wake = starts_.at;
  if (source_is_wanted()) wake = std::min(source_at_, wake.value_or(source_at_));
  return wake;
}

}  // namespace postrider::core
