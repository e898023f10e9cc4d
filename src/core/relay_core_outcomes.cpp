// From the outcome of an attempt to what is written about its delivery.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "core/relay_core.hpp"

namespace postrider::core {
namespace {

bool blocks(DeliveryStatus status, OnFailed on_failed) {
  return status == DeliveryStatus::pending || status == DeliveryStatus::dispatched ||
         (status == DeliveryStatus::failed && on_failed == OnFailed::halt);
}

}  // namespace

void RelayCore::on_outcome(MessageOutcome& arrived) {
  const auto attempt = attempts_.find(arrived.attempt);
  if (attempt == attempts_.end()) {
    on_orphan(arrived);
    return;
  }
  const ItemId id = attempt->second;
  attempts_.erase(attempt);
  auto& item = items_.at(id);
  item.attempt.reset();
  --routes_[item.route].in_flight;
  if (arrived.outcome.kind != OutcomeKind::confirmed) record_error(item, arrived.outcome);
  on_answer(id, arrived.attempt, arrived.outcome);
}

// Its delivery is not ours any more, or is read again: only what it tells of the destination
// counts.
void RelayCore::on_orphan(const MessageOutcome& arrived) {
  const auto orphan = orphans_.find(arrived.attempt);
  if (orphan == orphans_.end()) return;
  auto& state = routes_[orphan->second];
  orphans_.erase(orphan);
  --state.in_flight;
  if (arrived.outcome.kind == OutcomeKind::unknown && !arrived.outcome.answered) {
    note_circuit(state, state.circuit.on_outage(now_, arrived.outcome.code));
  } else {
    tell_circuit(state, arrived.outcome);
  }
}

void RelayCore::on_answer(ItemId id, AttemptId attempt, const Outcome& outcome) {
  auto& item = items_.at(id);
  auto& state = routes_[item.route];
  if (outcome.kind == OutcomeKind::unknown) item.ambiguous = true;
  if (outcome.kind == OutcomeKind::unknown && !outcome.answered) {
    state.lost_connection = state.lost_connection || outcome.connection_lost;
    state.doubtful.push_back({id, attempt, outcome});
    return;
  }
  tell_circuit(state, outcome);
  const bool outage =
      outcome.kind == OutcomeKind::unavailable || outcome.kind == OutcomeKind::throttled;
  if (!outage) state.last_answered = std::max(state.last_answered, attempt);
  decide(id, outcome, outage);
}

// What an outcome says about the destination as a whole.
void RelayCore::tell_circuit(RouteState& state, const Outcome& outcome) {
  switch (outcome.kind) {
    case OutcomeKind::confirmed:
      note_circuit(state, state.circuit.on_confirmed());
      break;
    case OutcomeKind::refused:
    case OutcomeKind::rejected:
    case OutcomeKind::gone:
      note_circuit(state, state.circuit.on_failed(now_));
      break;
    case OutcomeKind::unavailable:
      note_circuit(state, state.circuit.on_outage(now_, outcome.code));
      break;
    case OutcomeKind::throttled:
      note_circuit(state, state.circuit.on_throttled(now_, outcome.after));
      break;
    case OutcomeKind::unknown:  // without an answer nobody can say yet
      if (outcome.answered) note_circuit(state, state.circuit.on_failed(now_));
      break;
  }
}

// Was it the message, or the destination? A message that stays unanswered while one that left after
// it was answered is at fault itself, and so is one that was alone. When a whole window stays
// unanswered, or the connection is gone, it was an outage, and with an unanswered probe the outage
// goes on. Nothing is sent on the route while this is open, so that it comes to an end.
void RelayCore::resolve_doubts(RouteState& state) {
  std::vector<Doubtful> open;
  for (auto& doubtful : std::exchange(state.doubtful, {})) {
    if (doubtful.attempt < state.last_answered && !doubtful.outcome.connection_lost) {
      decide(doubtful.item, doubtful.outcome, false);
    } else {
      open.push_back(std::move(doubtful));
    }
  }
  if (open.empty() || state.in_flight > 0) {
    state.doubtful = std::move(open);
    return;
  }
  const bool alone = open.size() == 1;
  const bool lost = std::exchange(state.lost_connection, false);
  const bool was_probe = state.circuit.paused();
  if (lost || !alone || was_probe) {
    note_circuit(state, state.circuit.on_outage(now_, open.front().outcome.code));
  }
  const bool outage = !alone || (was_probe && !lost);
  for (const auto& doubtful : open)
    decide(doubtful.item, doubtful.outcome, outage);
}

// Heads that used no attempt go back to where they came from, in the order in which they were made.
void RelayCore::give_back_returned(RouteState& state) {
  std::erase_if(state.returned, [&](ItemId id) { return !items_.contains(id); });
  std::sort(state.returned.begin(), state.returned.end());
  state.queue.give_back(std::exchange(state.returned, {}));
}

void RelayCore::decide(ItemId id, const Outcome& outcome, bool outage) {
  const auto& item = items_.at(id);
  auto& state = routes_[item.route];
  if (outcome.kind == OutcomeKind::gone && state.route.one_address) {
    if (!is_being_stopped(state.route.name)) stop_route(item, outcome.code, outcome.detail);
    return keep_item(id);
  }
  const bool excused = outage && !state.route.outage_counts;
  const auto verdict = judge(outcome, excused, item.attempts, retry_delays(item));
  switch (verdict.kind) {
    case Verdict::Kind::completed:
      complete_item(id);
      break;
    case Verdict::Kind::retry:
      retry_item(id, verdict);
      break;
    case Verdict::Kind::failed:
      fail_item(id, verdict);
      break;
    case Verdict::Kind::unchanged:
      keep_item(id);
      break;
  }
}

// No attempt was used: it waits where it was.
void RelayCore::keep_item(ItemId id) {
  const auto& item = items_.at(id);
  if (item.queued) {
    routes_[item.route].returned.push_back(id);
  } else {  // its result was late and its row says dispatched: it is due again at once
    update_row(id, new_update(item, DeliveryStatus::pending), true);
  }
}

// Until a person resumes it, over restarts and for all relays.
void RelayCore::stop_route(const Item& item, const std::string& code, const std::string& detail) {
  auto& state = routes_[item.route];
  draft_.stopped_routes.push_back(state.route.name);
  note_circuit(state, state.circuit.set_blocked(true));
  auto notice = notice_about(NoticeKind::route_stopped, item);
  notice.code = code;
  notice.detail = detail;
  draft_.notices.push_back(std::move(notice));
}

void RelayCore::complete_item(ItemId id) {
  auto& item = items_.at(id);
  const auto& route = routes_[item.route].route;
  if (!continuous_) record_sent(item);
  if (item.row) {
    draft_.notices.push_back(notice_about(NoticeKind::delivery_completed, item));
    update_row(id, new_update(item, DeliveryStatus::completed), false);
    return;
  }
  const EntryId entry = *item.entry;
  if (route.record == Record::all) {
    entries_.at(entry).rows.push_back(new_row(item, DeliveryStatus::completed));
  }
  finish_in_lane(id);
  erase_item(id);
  leave_entry(entry, id);
}

void RelayCore::retry_item(ItemId id, const Verdict& verdict) {
  auto& item = items_.at(id);
  ++report_.retried;
  note_next_due(verdict.wait);
  item.attempts = verdict.attempts;
  auto notice = notice_about(NoticeKind::retry_scheduled, item);
  notice.code = verdict.code;
  notice.detail = verdict.detail;
  notice.wait = verdict.wait;
  draft_.notices.push_back(std::move(notice));
  due_at_ = std::min(due_at_, now_ + verdict.wait);
  if (item.row) {
    auto update = new_update(item, DeliveryStatus::pending);
    update.available_in = verdict.wait;
    update.failure_code = verdict.code;
    update.failure_detail = verdict.detail;
    update_row(id, std::move(update), true);
    return;
  }
  auto row = new_row(item, DeliveryStatus::pending);
  row.available_in = verdict.wait;
  row.failure_code = verdict.code;
  row.failure_detail = verdict.detail;
  write_row(id, std::move(row), true);
}

void RelayCore::fail_item(ItemId id, const Verdict& verdict) {
  auto& item = items_.at(id);
  ++report_.failed;
  item.attempts = verdict.attempts;
  auto notice = notice_about(NoticeKind::delivery_failed, item);
  notice.code = verdict.code;
  notice.detail = verdict.detail;
  draft_.notices.push_back(std::move(notice));
  const auto policy = on_failed(item);
  if (policy == OnFailed::stop) stop_route(item, verdict.code, verdict.detail);
  const bool halts = blocks(DeliveryStatus::failed, policy);
  if (item.row) {
    auto update = new_update(item, DeliveryStatus::failed);
    update.failure_code = verdict.code;
    update.failure_detail = verdict.detail;
    update_row(id, std::move(update), halts);
    return;
  }
  auto row = new_row(item, DeliveryStatus::failed);
  row.failure_code = verdict.code;
  row.failure_detail = verdict.detail;
  write_row(id, std::move(row), halts);
}

// The head of a blocked lane that has no row yet becomes one, behind the row before it.
void RelayCore::become_behind(ItemId id) {
  auto& item = items_.at(id);
  POSTRIDER_ASSERT(item.entry);
  if (kills_relays(item)) return quarantine(id);
  ++report_.parked;
  auto row = new_row(item, DeliveryStatus::pending);
  if (item.row_instead) row.available_in = item.row_instead->delay;
  write_row(id, std::move(row), true);
}

// Stored deliveries that are not sent now stay in the database as they are.
void RelayCore::leave_row(ItemId id) {
  const auto item = items_.at(id);
  POSTRIDER_ASSERT(item.row && item.queued);
  if (item.ambiguous && !item.row->ambiguous) {
    draft_.updates.push_back(new_update(item, DeliveryStatus::pending));
  }
  if (item.key) {
    advance_blocked_lane(item.route, *item.key, id);
  }
  erase_item(id);
}

// The row of a delivery that has none is written with the settle of its event. Until then it stays
// the head of its lane, whatever `blocks` says: nothing may pass it.
void RelayCore::write_row(ItemId id, NewDelivery row, bool blocks) {
  auto& item = items_.at(id);
  const EntryId entry_id = *item.entry;
  auto& entry = entries_.at(entry_id);
  entry.rows.push_back(std::move(row));
  if (!item.key) {
    erase_item(id);
  } else if (blocks) {
    entry.lane_heads.push_back(id);
  } else {
    finish_in_lane(id);
    erase_item(id);
  }
  leave_entry(entry_id, id);
}

void RelayCore::update_row(ItemId id, DeliveryUpdate update, bool blocks) {
  const auto item = items_.at(id);
  draft_.updates.push_back(std::move(update));
  auto& queue = routes_[item.route].queue;
  if (item.key && blocks) {
    queue.on_row_drafted(*item.key);
    draft_.lane_rows.push_back({item.partition, item.route, *item.key});
  }
  if (item.queued && item.key && blocks) {
    advance_blocked_lane(item.route, *item.key, id);
  } else if (item.queued) {
    finish_in_lane(id);
  }
  erase_item(id);
}

// Takes the head out of a lane that a row blocks. Stored deliveries behind it are rows already and
// are read again when their time comes; the first one without a row has to become one.
void RelayCore::advance_blocked_lane(std::size_t route, const std::string& key, ItemId head) {
  auto& queue = routes_[route].queue;
  auto next = queue.block(head, key);
  while (next && items_.at(*next).row) {
    const ItemId stored = *next;
    next = queue.block(stored, key);
    erase_item(stored);
  }
  if (next) become_behind(*next);
}

void RelayCore::finish_in_lane(ItemId id) {
  const auto& item = items_.at(id);
  const auto route = item.route;
  move_up_in_blocked_lane(route, routes_[route].queue.finish(id, item.key));
}

// A stored delivery was read because it may leave; one without a row must not pass rows that stand
// between it and those in memory.
void RelayCore::move_up_in_blocked_lane(std::size_t route, std::optional<ItemId> head) {
  if (!head) return;
  const auto& item = items_.at(*head);
  if (item.row) {
    routes_[route].queue.make_ready(*head);
  } else if (is_undecided(item, *head)) {
    become_behind(*head);
  }
}

bool RelayCore::is_undecided(const Item& item, ItemId id) const {
  const auto& undecided = entries_.at(*item.entry).undecided;
  return std::find(undecided.begin(), undecided.end(), id) != undecided.end();
}

void RelayCore::leave_entry(EntryId id, ItemId item) {
  auto& entry = entries_.at(id);
  std::erase(entry.undecided, item);
  if (entry.undecided.empty()) {
    complete_.push_back(id);
  } else if (crash_watch_.alone()) {
    // What this route has is settled before the event is sent on the next one: should it kill the
    // relay there, nothing else is in doubt.
    partly_decided_.emplace_front(now_, id);
  } else {
    partly_decided_.emplace_back(now_ + options_.settle_patience, id);
  }
}

// A worklist and no recursion: a lane of a thousand events may become rows one after the other
// here.
void RelayCore::complete_entries() {
  while (!complete_.empty()) {
    auto entry = entries_.extract(complete_.front());
    complete_.pop_front();
    complete_entry(std::move(entry.mapped()));
  }
}

void RelayCore::complete_entry(Entry entry) {
  if (!entry.stays_unrouted) draft_.routed.push_back({entry.event->seq, entry.partition});
  if (!entry.held_row) draft_.events.push_back({entry.partition, entry.batch});
  if (entry.held_row) draft_.released.push_back({entry.partition, *entry.held_row});
  for (auto& row : entry.rows)
    draft_.deliveries.push_back(std::move(row));
  for (const auto head : entry.lane_heads) {
    auto& item = items_.at(head);
    const auto route = item.route;
    const auto key = *item.key;
    routes_[route].queue.on_row_drafted(key);
    draft_.lane_rows.push_back({entry.partition, route, key});
    const bool late = item.row.has_value();  // in flight, its row says dispatched
    item.queued = false;
    advance_blocked_lane(route, key, head);
    if (!late) erase_item(head);
  }
}

void RelayCore::erase_item(ItemId id) {
  const auto found = items_.find(id);
  if (round_until_ && id <= *round_until_) --round_open_;
  if (found->second.row) rows_in_memory_.erase(found->second.row->id);
  items_.erase(found);
}

void RelayCore::record_sent(const Item& item) {
  const auto& route = routes_[item.route].route.name;
  ++report_.confirmed[route];
  if (report_.sent.size() >= PassReport::most_sent) return;
  report_.sent.push_back({item.event->seq, item.event->id, route});
}

void RelayCore::record_error(const Item& item, const Outcome& outcome) {
  record_error({routes_[item.route].route.name, item.event->seq, item.event->id, outcome.kind,
                outcome.code, outcome.detail});
}

void RelayCore::record_error(PassError error) {
  if (report_.errors.size() >= PassReport::most_errors) {
    ++report_.errors_left_out;
    return;
  }
  report_.errors.push_back(std::move(error));
}

void RelayCore::note_circuit(RouteState& state, Circuit::Change change) {
  if (change == Circuit::Change::none) return;
  Notice notice;
  notice.kind =
      change == Circuit::Change::paused ? NoticeKind::route_paused : NoticeKind::route_resumed;
  notice.route = state.route.name;
  notice.code = state.circuit.blocked() ? "blocked" : state.circuit.reason();
  notify(std::move(notice));
}

Notice RelayCore::notice_about(NoticeKind kind, const Item& item) const {
  Notice notice;
  notice.kind = kind;
  notice.route = routes_[item.route].route.name;
  notice.event_id = item.event->id;
  notice.event_seq = item.event->seq;
  notice.event_type = item.event->type;
  if (item.row) notice.delivery_id = item.row->id;
  notice.dispatch_id = item.dispatch_id;
  notice.attempts = item.attempts;
  notice.partition = item.partition;
  return notice;
}

Notice RelayCore::notice_about(NoticeKind kind, const Entry& entry) {
  Notice notice;
  notice.kind = kind;
  notice.event_id = entry.event->id;
  notice.event_seq = entry.event->seq;
  notice.event_type = entry.event->type;
  notice.partition = entry.partition;
  return notice;
}

NewDelivery RelayCore::new_row(const Item& item, DeliveryStatus status) const {
  const auto& route = routes_[item.route].route;
  NewDelivery row;
  row.id = DeliveryId(ids_->next());
  row.event_seq = item.event->seq;
  row.event_id = item.event->id;
  row.partition = item.partition;
  row.route = route.name;
  row.ordering_key = item.key;
  row.status = status;
  row.attempts = item.attempts;
  row.retry_delays = route.retry_delays;
  row.timeout = route.timeout;
  row.on_failed = route.on_failed;
  row.dispatch_id = item.dispatch_id;
  row.ambiguous = item.ambiguous;
  return row;
}

DeliveryUpdate RelayCore::new_update(const Item& item, DeliveryStatus status) const {
  DeliveryUpdate update;
  update.id = item.row->id;
  update.partition = item.partition;
  update.expected_status = item.row->status;
  update.expected_dispatch_id = item.row->dispatch_id;
  update.status = status;
  update.attempts = item.attempts;
  update.dispatch_id = item.dispatch_id ? item.dispatch_id : item.row->dispatch_id;
  update.ambiguous = item.ambiguous;
  return update;
}

const std::vector<milliseconds>& RelayCore::retry_delays(const Item& item) const {
  return item.row ? item.row->retry_delays : routes_[item.route].route.retry_delays;
}

OnFailed RelayCore::on_failed(const Item& item) const {
  return item.row ? item.row->on_failed : routes_[item.route].route.on_failed;
}

}  // namespace postrider::core
