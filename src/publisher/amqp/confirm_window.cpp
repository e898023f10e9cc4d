#include "publisher/amqp/confirm_window.hpp"

#include <algorithm>
#include <iterator>

namespace postrider::amqp {

std::uint64_t ConfirmWindow::add(AttemptId attempt, const EventId& event, Instant expires_at) {
  tags_.emplace_hint(tags_.end(), next_tag_, Tag{attempt, event, expires_at});
  next_expiry_ = std::min(next_expiry_, expires_at);
  ++live_;
  return next_tag_++;
}

bool ConfirmWindow::mark_returned(const EventId& event) {
  const auto tag = std::find_if(tags_.begin(), tags_.end(), [&](const auto& entry) {
    return entry.second.event == event && !entry.second.returned;
  });
  if (tag == tags_.end()) return false;
  tag->second.returned = true;
  return true;
}

void ConfirmWindow::take(Tags::iterator first, Tags::iterator last, Settlement& settlement) {
  settlement.answer = first == last ? Answer::repeated : Answer::late;
  for (auto tag = first; tag != last; ++tag) {
    if (!tag->second.live) continue;
    settlement.answer = Answer::expected;
    settlement.settled.push_back({tag->second.attempt, tag->second.returned});
  }
  live_ -= settlement.settled.size();
  tags_.erase(first, last);
  if (live_ == 0) next_expiry_ = Instant::max();
}

ConfirmWindow::Settlement ConfirmWindow::settle(std::uint64_t tag, bool multiple) {
  Settlement settlement{Answer::impossible, {}};
  if (tag >= next_tag_ || (tag == 0 && !multiple)) return settlement;
  if (multiple) {
    const auto last = tag == 0 ? tags_.end() : tags_.upper_bound(tag);
    take(tags_.begin(), last, settlement);
  } else {
    const auto found = tags_.find(tag);
    take(found, found == tags_.end() ? found : std::next(found), settlement);
  }
  return settlement;
}

std::vector<AttemptId> ConfirmWindow::expire(Instant now) {
  std::vector<AttemptId> expired;
  if (now < next_expiry_) return expired;
  next_expiry_ = Instant::max();
  for (auto& [number, tag] : tags_) {
    if (!tag.live) continue;
    if (tag.expires_at <= now) {
      tag.live = false;
      expired.push_back(tag.attempt);
    } else {
      next_expiry_ = std::min(next_expiry_, tag.expires_at);
    }
  }
  live_ -= expired.size();
  return expired;
}

std::vector<AttemptId> ConfirmWindow::reset() {
  std::vector<AttemptId> lost;
  for (const auto& [number, tag] : tags_) {
    if (tag.live) lost.push_back(tag.attempt);
  }
  *this = ConfirmWindow();
  return lost;
}

std::optional<Instant> ConfirmWindow::next_expiry() const noexcept {
  if (live_ == 0) return std::nullopt;
  return next_expiry_;
}

}  // namespace postrider::amqp
