// After owners that died: what was theirs is taken up with care.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "core/relay_core.hpp"

namespace postrider::core {
namespace {

constexpr std::string_view relay_crashed = "relay_crashed";
constexpr std::string_view relay_crashed_detail =
    "relays died one after the other, the last one while this event alone was being sent; it may "
    "have arrived";

}  // namespace

void RelayCore::take_suspicion(const GrantedLease& granted, bool gained) {
  const auto partition = granted.lease.partition;
  if (!gained) return crash_watch_.refresh(partition, granted.suspicion);
  crash_watch_.gain(partition, granted.suspicion);
  if (granted.suspicion.crashes == 0) return;
  round_until_.reset();
  wants_.due = wants_.claim = !stopping_;
}

void RelayCore::tell_of_suspicion() {
  const bool alone = crash_watch_.alone();
  if (alone == std::exchange(told_of_suspicion_, alone)) return;
  Notice notice;
  notice.kind = alone ? NoticeKind::crashes_suspected : NoticeKind::crashes_cleared;
  notice.crashes = crash_watch_.crashes();
  notice.detail = alone ? "events are sent one at a time, to find the one that kills relays"
                        : "what dead relays left is settled; events are sent at full speed again";
  notify(std::move(notice));
}

// ---- one at a time

// Everything before is settled and the event's name is stored when it leaves: a crash from here on
// is nobody else's.
void RelayCore::submit_alone() {
  if (settling_ || is_looking() || anything_in_flight()) return;
  store_all_instead();
  if (alone_ && !may_go_alone(*alone_)) alone_.reset();
  if (!alone_) alone_ = next_alone();
  std::optional<CrashWatch::Probe> probe;
  if (alone_) probe = {items_.at(*alone_).partition, items_.at(*alone_).event->seq};
  draft_.put(crash_watch_.to_probe(probe));
  if (!alone_ || !draft_.empty() || !complete_.empty()) return;
  const auto id = *std::exchange(alone_, std::nullopt);
  const auto route = items_.at(id).route;
  const bool taken = routes_[route].queue.take(id);
  POSTRIDER_ASSERT(taken);
  std::vector<Message> messages;
  messages.push_back(new_message(id));
  send(route, std::move(messages));
}

void RelayCore::store_all_instead() {
  for (auto& state : routes_) {
    const auto ready = state.queue.ready();
    for (const auto id : ready) {
      if (items_.at(id).row_instead && state.queue.take(id)) store_instead(id);
    }
  }
}

// What a dead owner had named goes first, so that nothing comes between its two chances. Then the
// oldest event of all routes that may send: what waits behind it on another route follows.
std::optional<ItemId> RelayCore::next_alone() {
  std::optional<ItemId> first = ready_suspect();
  if (first) return first;
  for (auto& state : routes_) {
    if (!state.queue.has_ready() || !may_send(state)) continue;
    turn_to_another_probe(state);
    const auto id = state.queue.next_ready();
    if (!first || items_.at(id).event->seq < items_.at(*first).event->seq) first = id;
  }
  return first;
}

std::optional<ItemId> RelayCore::ready_suspect() const {
  for (const auto& state : routes_) {
    if (!may_send(state)) continue;
    for (const auto id : state.queue.ready()) {
      const auto& item = items_.at(id);
      if (crash_watch_.suspects(item.partition, item.event->seq)) return id;
    }
  }
  return std::nullopt;
}

bool RelayCore::may_go_alone(ItemId id) const {
  const auto item = items_.find(id);
  if (item == items_.end()) return false;
  const auto& state = routes_[item->second.route];
  return state.queue.is_ready(id) && may_send(state);
}

// The probe of a paused route has to wait until its event is named; until then nothing of the route
// is parked, or there would be none.
bool RelayCore::may_probe_alone(const RouteState& state) const {
  return crash_watch_.alone() && may_submit() && may_send(state);
}

bool RelayCore::anything_in_flight() const {
  return !attempts_.empty() || !orphans_.empty();
}

bool RelayCore::is_reading() const {
  return arrived_ || call_ == StoreCall::held || call_ == StoreCall::due ||
         call_ == StoreCall::claim;
}

// All of it has to be in memory before the first probe is stored: the probe that the last owner
// left is to be found, and what is stored next takes its place.
bool RelayCore::is_looking() const {
  return is_reading() || held_is_wanted() || due_is_wanted() || claim_is_wanted();
}

// ---- the end of suspicion

// Whoever has settled all that a dead owner can have been sending has met what killed it.
void RelayCore::follow_round() {
  if (crash_watch_.calm() || stopping_ || error_) return;
  if (!round_until_) {
    // At full speed reading never ends while there is a backlog; one look is the round then.
    const bool looking = crash_watch_.alone() ? is_looking() : is_reading() || held_is_wanted();
    if (wants_.due || wants_.claim || looking) return;
    round_until_ = last_item_;
    round_open_ = items_.size();
  }
  const bool being_stored = settling_ && !settling_->suspicions.empty();
  if (round_open_ == 0 && complete_.empty() && !being_stored) {
    draft_.put(crash_watch_.to_clear());
  }
}

// ---- the event that kills relays

bool RelayCore::kills_relays(const Item& item) {
  return item.row_instead && item.row_instead->kills_relays;
}

// No attempt is used: there was no result.
void RelayCore::quarantine(ItemId id) {
  auto& item = items_.at(id);
  item.ambiguous = true;
  record_error(item,
               Outcome::unknown(std::string(relay_crashed), std::string(relay_crashed_detail)));
  fail_item(id, {Verdict::Kind::failed,
                 item.attempts,
                 {},
                 std::string(relay_crashed),
                 std::string(relay_crashed_detail)});
}

}  // namespace postrider::core
