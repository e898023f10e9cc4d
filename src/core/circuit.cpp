#include "core/circuit.hpp"

#include <algorithm>
#include <utility>

namespace postrider::core {

std::size_t Circuit::allowance(Instant now, std::size_t in_flight,
                               std::size_t window) const noexcept {
  if (blocked_) return 0;
  switch (state_) {
    case State::closed:
      return window > in_flight ? window - in_flight : 0;
    case State::open:
      return now >= probe_at_ && in_flight == 0 ? 1 : 0;
    case State::probing:
      return 0;
  }
  return 0;
}

void Circuit::on_submitted() noexcept {
  if (state_ == State::open) state_ = State::probing;
}

Circuit::Change Circuit::on_confirmed() noexcept {
  remember(false);
  openings_ = 0;
  return close();
}

Circuit::Change Circuit::on_failed(Instant now) {
  remember(true);
  if (state_ == State::probing && suspect_) return open(now + next_wait(), "route_suspect");
  if (state_ == State::probing) return close();
  const bool jumped =
      answers_ >= remembered_answers && failures_.count() >= suspect_failures && !suspect_;
  if (state_ != State::closed || !jumped) return Change::none;
  suspect_ = true;
  return open(now + next_wait(), "route_suspect");
}

Circuit::Change Circuit::on_outage(Instant now, std::string reason) {
  if (state_ == State::open) return Change::none;  // one outage, told by every message in flight
  return open(now + next_wait(), std::move(reason));
}

Circuit::Change Circuit::on_throttled(Instant now, milliseconds after) {
  const auto until = now + std::max(after, policy_.probe_least);
  if (state_ == State::open && probe_at_ >= until) return Change::none;
  return open(until, "throttled");
}

Circuit::Change Circuit::set_blocked(bool blocked) noexcept {
  if (blocked == std::exchange(blocked_, blocked)) return Change::none;
  if (blocked) return Change::paused;
  return state_ == State::closed ? Change::resumed : Change::none;
}

Circuit::Change Circuit::open(Instant at, std::string reason) {
  const bool was_closed = state_ == State::closed;
  state_ = State::open;
  probe_at_ = at;
  reason_ = std::move(reason);
  return was_closed ? Change::paused : Change::none;
}

Circuit::Change Circuit::close() noexcept {
  if (std::exchange(suspect_, false)) {
    failures_.reset();
    answers_ = 0;
  }
  if (state_ == State::closed) return Change::none;
  state_ = State::closed;
  reason_.clear();
  return blocked_ ? Change::none : Change::resumed;
}

void Circuit::remember(bool failure) noexcept {
  failures_ <<= 1;
  failures_.set(0, failure);
  answers_ = std::min(answers_ + 1, remembered_answers);
}

// Doubles from `probe_least` to `probe_most`, then takes between half and all of it, so that relays
// that saw the same outage do not knock at the same moment.
milliseconds Circuit::next_wait() {
  constexpr unsigned most_doublings = 20;
  const auto doubled =
      policy_.probe_least * (std::int64_t{1} << std::min(openings_++, most_doublings));
  const auto whole = std::min(doubled, policy_.probe_most);
  const auto half = whole / 2;
  const auto chance = static_cast<std::int64_t>(
      random_->next() % static_cast<std::uint64_t>((whole - half).count() + 1));
  return half + milliseconds(chance);
}

}  // namespace postrider::core
