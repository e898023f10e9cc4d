#include "publisher/amqp/mailbox.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace postrider::amqp {
namespace {

Instant now() {
  return system_clock().steady();
}

Error link_timeout() {
  return {ErrorCode::timeout, Disposition::retry,
          "RabbitMQ was not connected in time; check host, port and network.", "amqp", ""};
}

}  // namespace

// --- the caller's side ---

void Mailbox::begin(DriverNumber number, std::shared_ptr<SocketGuard> guard) {
  const MutexLock lock(mutex_);
  driver_ = number;
  guard_ = std::move(guard);
  end_wanted_ = false;
  driver_ended_ = false;
  driver_opening_ = false;
  turn_began_.reset();
  writing_.reset();
  link_ = Link::down;
  link_wanted_ = false;
}

bool Mailbox::link_is_doubtful() const {
  // Blocked, it is known why answers stay away, and a new connection would be blocked as well.
  if (blocked_ || window_.forgotten() == 0) return false;
  const bool nothing_else = window_.live() == 0 && queue_.empty();
  // Beyond a window of lost answers the channel is not worth its memory.
  return nothing_else || window_.forgotten() >= limits_.window;
}

Result<void> Mailbox::await_link(Deadline deadline) {
  const MutexLock lock(mutex_);
  cut_what_is_stuck(now());
  if (link_ == Link::up && !link_is_doubtful()) return {};
  if (link_ != Link::opening) {
    link_ = Link::opening;
    link_wanted_ = true;
    link_error_.reset();
    bell_.ring();
  }
  while (link_ == Link::opening && !deadline.passed()) {
    changed_.wait_for(mutex_, deadline.remaining());
  }
  if (link_ == Link::up) return {};
  return link_error_ ? *link_error_ : link_timeout();
}

std::size_t Mailbox::frame_max() {
  const MutexLock lock(mutex_);
  return frame_max_;
}

bool Mailbox::enqueue(std::vector<OutgoingMessage>& messages) {
  const MutexLock lock(mutex_);
  if (link_ != Link::up) return false;
  for (auto& message : messages) {
    queue_expiry_ = std::min(queue_expiry_, message.expires_at);
    queue_.push_back(std::move(message));
  }
  messages.clear();
  bell_.ring();
  return true;
}

void Mailbox::report(std::vector<MessageOutcome> outcomes) {
  const MutexLock lock(mutex_);
  std::move(outcomes.begin(), outcomes.end(), std::back_inserter(outcomes_));
}

std::vector<MessageOutcome> Mailbox::collect(Deadline deadline) {
  const MutexLock lock(mutex_);
  for (;;) {
    const Instant at = now();
    expire(at);
    cut_what_is_stuck(at);
    if (!outcomes_.empty() || woken_ || deadline.passed()) break;
    changed_.wait_for(mutex_, std::min(deadline.remaining(), time_to_next_expiry(at)));
  }
  woken_ = false;
  return std::exchange(outcomes_, {});
}

void Mailbox::wake() noexcept {
  const MutexLock lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

void Mailbox::ask_to_end() {
  const MutexLock lock(mutex_);
  end_wanted_ = true;
  bell_.ring();
}

bool Mailbox::await_end(Deadline deadline) {
  const MutexLock lock(mutex_);
  while (!driver_ended_ && !deadline.passed())
    changed_.wait_for(mutex_, deadline.remaining());
  return driver_ended_;
}

bool Mailbox::await_end_or_disown(Deadline deadline) {
  constexpr milliseconds look_again{20};
  const MutexLock lock(mutex_);
  while (!driver_ended_) {
    if (driver_opening_ && deadline.passed()) {
      driver_ = DriverNumber();
      return false;
    }
    changed_.wait_for(mutex_, std::max(deadline.remaining(), look_again));
  }
  return true;
}

std::vector<MessageOutcome> Mailbox::clear() {
  const MutexLock lock(mutex_);
  constexpr std::string_view detail = "The destination was closed before the broker answered.";
  for (const auto attempt : window_.reset())
    push(attempt, Outcome::unknown("closed", detail));
  for (const auto& message : queue_)
    push(message.attempt, Outcome::unknown("closed", detail));
  queue_.clear();
  queue_expiry_ = Instant::max();
  driver_ = DriverNumber();
  link_ = Link::down;
  blocked_ = false;
  return std::exchange(outcomes_, {});
}

void Mailbox::push(AttemptId attempt, Outcome outcome) {
  outcomes_.push_back({attempt, std::move(outcome)});
}

void Mailbox::expire(Instant at) {
  for (const auto attempt : window_.expire(at)) {
    push(attempt, Outcome::unknown("timeout", "RabbitMQ did not confirm in time."));
    // Who waits for this write waits for nothing, and blocks everything behind it.
    if (writing_ == attempt) guard_->cut();
  }
  expire_queued(at);
}

void Mailbox::expire_queued(Instant at) {
  if (at < queue_expiry_) return;
  const auto outcome =
      blocked_ ? Outcome::unavailable("blocked",
                                      "RabbitMQ takes nothing while it is short of memory or disk; "
                                      "see its alarms.")
               : Outcome::unavailable("stalled", "RabbitMQ read too slowly to send this in time.");
  queue_expiry_ = Instant::max();
  std::deque<OutgoingMessage> kept;
  for (auto& message : queue_) {
    if (message.expires_at <= at) {
      push(message.attempt, outcome);
    } else {
      queue_expiry_ = std::min(queue_expiry_, message.expires_at);
      kept.push_back(std::move(message));
    }
  }
  queue_ = std::move(kept);
}

void Mailbox::cut_what_is_stuck(Instant at) {
  const bool stuck = turn_began_ && !writing_ && at - *turn_began_ > limits_.stuck_after;
  if (link_ == Link::up && stuck) guard_->cut();
}

milliseconds Mailbox::time_to_next_expiry(Instant at) const {
  Instant first = window_.next_expiry().value_or(at + limits_.stuck_after);
  first = std::min(first, queue_expiry_);  // too early costs one more look
  // Rounded up, so that the wait does not end just before the expiry.
  return std::max(milliseconds(1), std::chrono::ceil<milliseconds>(first - at));
}

// --- the driver's side ---

DriverOrders Mailbox::begin_turn(DriverNumber number) {
  const MutexLock lock(mutex_);
  if (number != driver_) return {true, false};
  turn_began_ = now();
  return {end_wanted_, std::exchange(link_wanted_, false)};
}

void Mailbox::rest(int descriptor, milliseconds patience) {
  {
    const MutexLock lock(mutex_);
    turn_began_.reset();
  }
  std::array<pollfd, 2> waiting{pollfd{bell_.descriptor(), POLLIN, 0},
                                pollfd{descriptor, POLLIN, 0}};  // A negative one is left out.
  const int limit = descriptor < 0 ? -1 : static_cast<int>(patience.count());
  (void)::poll(waiting.data(), waiting.size(), limit);  // An interrupted rest is just a short one.
  bell_.silence();
}

void Mailbox::link_opening() {
  const MutexLock lock(mutex_);
  driver_opening_ = true;
}

bool Mailbox::link_opened(DriverNumber number, std::size_t frame_max) {
  const MutexLock lock(mutex_);
  if (number != driver_) return false;
  driver_opening_ = false;
  turn_began_ = now();
  link_ = Link::up;
  frame_max_ = frame_max;
  blocked_ = false;
  changed_.notify_all();
  return true;
}

void Mailbox::link_failed(DriverNumber number, Error error) {
  const MutexLock lock(mutex_);
  if (number != driver_) return;
  driver_opening_ = false;
  link_ = Link::down;
  link_error_ = std::move(error);
  changed_.notify_all();
}

std::optional<OutgoingMessage> Mailbox::next_to_write() {
  const MutexLock lock(mutex_);
  if (blocked_ || end_wanted_ || queue_.empty()) return std::nullopt;
  auto message = std::move(queue_.front());
  queue_.pop_front();
  window_.add(message.attempt, message.event->id, message.expires_at);
  writing_ = message.attempt;
  return message;
}

void Mailbox::written() {
  const MutexLock lock(mutex_);
  writing_.reset();
  turn_began_ = now();  // A long burst of short writes is not stuck.
}

void Mailbox::set_blocked(bool blocked) {
  const MutexLock lock(mutex_);
  blocked_ = blocked;
}

bool Mailbox::settle(std::uint64_t tag, bool multiple, bool acknowledged) {
  const MutexLock lock(mutex_);
  auto settlement = window_.settle(tag, multiple);
  for (const auto& [attempt, returned] : settlement.settled) {
    if (!acknowledged) {
      push(attempt, Outcome::refused("nacked",
                                     "RabbitMQ refused the message (basic.nack); a queue "
                                     "may be full or unavailable."));
    } else {
      push(attempt, returned ? limits_.unroutable : Outcome::confirmed());
    }
  }
  if (!settlement.settled.empty()) changed_.notify_all();
  return settlement.answer != ConfirmWindow::Answer::impossible;
}

bool Mailbox::mark_returned(const EventId& event) {
  const MutexLock lock(mutex_);
  return window_.mark_returned(event);
}

void Mailbox::drop_link(std::string_view detail, const Outcome* offender, const Outcome& queued) {
  const bool alone = window_.live() == 1 && window_.forgotten() == 0;
  for (const auto attempt : window_.reset()) {
    push(attempt, offender != nullptr && alone ? *offender : Outcome::lost_connection(detail));
  }
  for (const auto& message : queue_)
    push(message.attempt, queued);
  queue_.clear();
  queue_expiry_ = Instant::max();
  writing_.reset();
  blocked_ = false;
  if (link_ == Link::up) link_ = Link::down;
  changed_.notify_all();
}

void Mailbox::link_lost(std::string_view detail, const Outcome& queued) {
  const MutexLock lock(mutex_);
  drop_link(detail, nullptr, queued);
}

void Mailbox::channel_closed(std::string_view detail, const Outcome& offender,
                             const Outcome& queued) {
  const MutexLock lock(mutex_);
  drop_link(detail, &offender, queued);
}

void Mailbox::ended(DriverNumber number) {
  const MutexLock lock(mutex_);
  if (number != driver_) return;
  driver_ended_ = true;
  changed_.notify_all();
}

}  // namespace postrider::amqp
