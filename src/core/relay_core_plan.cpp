// What to do next: everything here looks at the state and asks for actions.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "core/relay_core.hpp"

namespace postrider::core {

void RelayCore::plan() {
  complete_entries();
  store_the_late();
  submit_ready();
  park_paused_routes();
  complete_entries();
  follow_round();
  if (draft_.empty()) {
    drafted_at_.reset();
  } else if (!drafted_at_) {
    drafted_at_ = now_;
  }
  call_store();
  ask_purge();
  finish_if_done();
}

// ---- one slow route must not delay the mark of what the others have delivered

void RelayCore::store_the_late() {
  while (!partly_decided_.empty() && partly_decided_.front().first <= now_) {
    const EntryId id = partly_decided_.front().second;
    partly_decided_.pop_front();
    const auto entry = entries_.find(id);
    if (entry == entries_.end() || entry->second.undecided.empty()) continue;
    const bool stored =
        entry->second.has_jobs ? store_late_with_heads(id) : store_late_alone(id, false);
    if (!stored) partly_decided_.emplace_back(now_ + options_.settle_patience, id);
  }
}

// What it held up moves on at once, so that nobody behind it looks for its head any more.
bool RelayCore::store_late_alone(EntryId id, bool in_doubt_too) {
  if (!may_be_stored_late(entries_.at(id), in_doubt_too)) return false;
  store_late(id);
  complete_entries();
  return true;
}

// Workers wait for what this event is to them, and it stands behind others that are not answered
// either: when these have become rows, all that queues behind them does.
bool RelayCore::store_late_with_heads(EntryId id) {
  if (store_late_alone(id, true)) return true;
  const auto undecided = entries_.at(id).undecided;
  for (const auto item_id : undecided) {
    const auto found = items_.find(item_id);
    if (found == items_.end() || found->second.attempt || !found->second.key) continue;
    const auto head = routes_[found->second.route].queue.head(*found->second.key);
    if (head && *head != item_id) store_head(*head);
  }
  return false;
}

// A head without a row came before whatever stands behind it, on every route, so this ends.
void RelayCore::store_head(ItemId id) {
  auto& item = items_.at(id);
  if (item.entry) {
    (void)store_late_with_heads(*item.entry);
  } else if (item.attempt || is_in_doubt(id)) {
    item.queued = false;  // its outcome finds the row
    advance_blocked_lane(item.route, std::string(*item.key), id);
  } else if (routes_[item.route].queue.take(id)) {
    park(id);
  }
}

// A row must not be committed before that of its predecessor, so an item behind a head cannot
// become one by itself; nor does one in doubt, whose verdict is near, unless workers wait.
bool RelayCore::may_be_stored_late(const Entry& entry, bool in_doubt_too) const {
  return std::all_of(entry.undecided.begin(), entry.undecided.end(), [&](ItemId id) {
    const auto& item = items_.at(id);
    return item.attempt || routes_[item.route].queue.is_ready(id) ||
           (in_doubt_too && is_in_doubt(id));
  });
}

void RelayCore::store_late(EntryId id) {
  const auto undecided = entries_.at(id).undecided;
  for (const auto item_id : undecided) {
    if (items_.at(item_id).attempt || is_in_doubt(item_id)) {
      store_in_flight(item_id);
    } else {
      const bool taken = routes_[items_.at(item_id).route].queue.take(item_id);
      POSTRIDER_ASSERT(taken);
      park(item_id);
      wants_.due = wants_.due || (crash_watch_.alone() && !stopping_);
    }
  }
}

void RelayCore::store_in_flight(ItemId id) {
  auto& item = items_.at(id);
  const EntryId entry_id = *std::exchange(item.entry, std::nullopt);
  auto row = new_row(item, DeliveryStatus::dispatched);
  Delivery stored;
  stored.id = row.id;
  stored.route = row.route;
  stored.status = row.status;
  stored.retry_delays = row.retry_delays;
  stored.on_failed = row.on_failed;
  stored.dispatch_id = row.dispatch_id;
  rows_in_memory_.emplace(row.id, id);
  item.row = std::move(stored);
  auto& entry = entries_.at(entry_id);
  entry.rows.push_back(std::move(row));
  if (item.key) {
    entry.lane_heads.push_back(id);
  } else {
    item.queued = false;
  }
  leave_entry(entry_id, id);
}

// ---- sending

bool RelayCore::may_submit() const {
  return !stopping_ && !error_ && now_ < lease_until_;
}

void RelayCore::submit_ready() {
  if (!may_submit()) return;
  if (crash_watch_.alone()) return submit_alone();
  for (std::size_t route = 0; route < routes_.size(); ++route)
    submit_on(route);
}

void RelayCore::submit_on(std::size_t route) {
  auto& state = routes_[route];
  if (!state.doubtful.empty()) return;
  auto allowance = state.circuit.allowance(now_, state.in_flight, state.route.window);
  if (allowance > 0) turn_to_another_probe(state);
  std::vector<Message> messages;
  while (state.queue.has_ready()) {
    const bool instead = items_.at(state.queue.next_ready()).row_instead.has_value();
    if (!instead && allowance == 0) break;
    const ItemId id = state.queue.take_ready();
    if (instead) {
      store_instead(id);
    } else {
      --allowance;
      messages.push_back(new_message(id));
    }
  }
  if (!messages.empty()) send(route, std::move(messages));
}

// Should one message be what the destination cannot answer, the next probe has to be another, or
// the route would never come back.
void RelayCore::turn_to_another_probe(RouteState& state) {
  if (state.circuit.paused() && state.circuit.openings() > 1) {
    state.queue.rotate(state.circuit.openings() - 1);
  }
}

void RelayCore::send(std::size_t route, std::vector<Message> messages) {
  auto& state = routes_[route];
  state.in_flight += messages.size();
  state.circuit.on_submitted();
  actions_.emplace_back(action::Submit{route, std::move(messages)});
}

void RelayCore::store_instead(ItemId id) {
  const auto instead = *items_.at(id).row_instead;
  if (instead.kills_relays) return quarantine(id);
  if (instead.outcome) {
    items_.at(id).ambiguous |= instead.outcome->kind == OutcomeKind::unknown;
    record_error(items_.at(id), *instead.outcome);
    decide(id, *instead.outcome, false);
  } else {
    note_next_due(instead.delay);
    park(id);
  }
}

Message RelayCore::new_message(ItemId id) {
  auto& item = items_.at(id);
  const AttemptId attempt(++last_attempt_);
  item.attempt = attempt;
  item.dispatch_id = DispatchId(ids_->next());
  attempts_.emplace(attempt, id);
  const auto timeout = item.row ? item.row->timeout : routes_[item.route].route.timeout;
  return {attempt, item.event, *item.dispatch_id, timeout};
}

// ---- a paused route must not hold up the others: its share becomes rows

void RelayCore::park_paused_routes() {
  for (auto& state : routes_) {
    if (!state.circuit.paused() || !another_route_is_healthy(state)) continue;
    if (may_probe_alone(state)) continue;
    while (state.queue.has_ready())
      park(state.queue.take_ready());
  }
}

void RelayCore::park(ItemId id) {
  const auto& item = items_.at(id);
  if (kills_relays(item)) return quarantine(id);
  if (item.row) {
    leave_row(id);
    return;
  }
  ++report_.parked;
  auto row = new_row(item, DeliveryStatus::pending);
  if (item.row_instead) row.available_in = item.row_instead->delay;
  write_row(id, std::move(row), true);
}

bool RelayCore::another_route_is_healthy(const RouteState& state) const {
  return std::any_of(routes_.begin(), routes_.end(), [&](const RouteState& other) {
    return &other != &state && !other.circuit.paused();
  });
}

// ---- the store

void RelayCore::call_store() {
  if (call_ != StoreCall::none) return;
  (void)(ask_lease() || ask_claim_in_turn() || ask_settle() || ask_held() || ask_due() ||
         ask_claim() || ask_mark());
}

bool RelayCore::ask_lease() {
  const bool renewal = !holdings_.empty() || continuous_;
  if (!wants_.lease && !(renewal && now_ >= renew_at_ && !error_)) return false;
  if (stopping_ && attempts_.empty() && draft_.empty() && !settling_) return false;
  wants_.lease = false;
  call_ = StoreCall::lease;
  LeaseRequest request;
  request.owner = owner_;
  request.lease_time = options_.lease_time;
  request.at_most = stopping_ ? 0 : all_partitions;
  actions_.emplace_back(action::Lease{std::move(request)});
  return true;
}

bool RelayCore::ask_settle() {
  if (settling_) {  // its answer was lost or it was refused: the same again
    give_settle();
    return true;
  }
  if (!settle_is_due()) return false;
  settling_ = std::exchange(draft_, {});
  drafted_at_.reset();
  give_settle();
  return true;
}

void RelayCore::give_settle() {
  call_ = StoreCall::settle;
  auto request = settling_->request();
  for (const auto partition : settling_->partitions()) {
    request.leases.push_back({partition, holdings_.at(partition).token});
  }
  actions_.emplace_back(action::Settle{std::move(request)});
}

bool RelayCore::settle_is_due() const {
  if (draft_.empty()) return false;
  if (!draft_.suspicions.empty()) return true;
  return draft_.size() >= options_.batch || nothing_moves() || now_ >= *drafted_at_ + settle_delay;
}

bool RelayCore::held_is_wanted() const {
  return wants_.held && !holdings_.empty() && !error_ && !stopping_ && has_room();
}

bool RelayCore::ask_held() {
  if (!held_is_wanted()) return false;
  call_ = StoreCall::held;
  HeldRequest request;
  request.partitions = partitions();
  request.after = held_after_;
  request.limit = read_limit();
  actions_.emplace_back(action::TakeHeld{std::move(request)});
  return true;
}

bool RelayCore::ask_due() {
  if (!due_is_wanted()) return false;
  DueRequest request;
  for (auto& state : routes_) {
    if (state.job || !may_send(state)) continue;
    request.routes.push_back(state.route.name);
    if (state.circuit.paused()) state.probed_for_rows = state.circuit.probe_at();
  }
  wants_.due = false;
  more_due_ = more_due_ && !request.routes.empty();
  if (request.routes.empty()) {
    due_at_ = now_ + options_.sleep;
    return false;
  }
  call_ = StoreCall::due;
  request.partitions = partitions();
  request.limit = read_limit();
  request.bytes = options_.batch_bytes;
  actions_.emplace_back(action::TakeDue{std::move(request)});
  return true;
}

// Stored deliveries are taken up a batch at a time: the next look only after the last one's rows
// are settled or forgotten, so that what it returns is new.
bool RelayCore::due_is_wanted() const {
  if (holdings_.empty() || error_ || stopping_ || !rows_in_memory_.empty()) return false;
  if (wants_.due) return draft_.empty() && !settling_;
  if (!continuous_) return false;
  const bool probe = std::any_of(routes_.begin(), routes_.end(), [&](const RouteState& state) {
    return state.circuit.paused() && may_send(state) && state.in_flight == 0 &&
           state.probed_for_rows != state.circuit.probe_at();
  });
  return (probe || now_ >= due_at_) && draft_.empty();
}

bool RelayCore::ask_claim() {
  if (!claim_is_wanted()) return false;
  wants_.claim = false;
  call_ = StoreCall::claim;
  ClaimRequest request;
  request.after = reading_.after();
  request.partitions = partitions();
  request.limit = read_limit();
  request.bytes = options_.batch_bytes;
  actions_.emplace_back(action::Claim{std::move(request)});
  return true;
}

// Reading and settling take turns while both have work: what was read leaves while the batch before
// it is settled.
bool RelayCore::ask_claim_in_turn() {
  return claim_before_settle_ && !settling_ && ask_claim();
}

// When no route may send, nothing is read: the events are safe where they are.
bool RelayCore::claim_is_wanted() const {
  if (holdings_.empty() || error_ || stopping_ || arrived_) return false;
  if (!has_room() || !any_route_may_send()) return false;
  return wants_.claim || (continuous_ && now_ >= claim_at_);
}

bool RelayCore::has_room() const {
  return settle_in_question_ ? entries_.empty() : entries_.size() <= options_.batch;
}

bool RelayCore::ask_mark() {
  const bool in_time = mark_stored_at_ && now_ < *mark_stored_at_ + mark_interval;
  const bool ending = (!continuous_ || stopping_) && nothing_moves() && !arrived_;
  if (error_ || (!ending && in_time)) return false;
  auto mark = reading_.storable();
  if (!mark) return false;
  settling_.emplace();
  settling_->mark = std::move(mark);
  give_settle();
  return true;
}

// ---- deleting what is old: only where nothing waits for the database, and by one relay only

void RelayCore::ask_purge() {
  const auto due_at = purge_.due_at();
  if (!due_at || now_ < *due_at || !may_purge()) return;
  actions_.emplace_back(action::Purge{purge_.ask()});
}

// Partition 0 stands for all: whoever owns it deletes for everybody.
bool RelayCore::may_purge() const {
  if (!continuous_ || stopping_ || error_ || now_ >= lease_until_) return false;
  return holdings_.contains(Partition(0)) && !more_events_ && !more_due_;
}

// ---- the end

bool RelayCore::may_send(const RouteState& state) const {
  if (state.job) return true;
  return state.in_flight > 0 ? !state.circuit.paused()
                             : state.circuit.allowance(now_, 0, state.route.window) > 0;
}

bool RelayCore::any_route_may_send() const {
  if (routes_.empty()) return true;  // there is nothing to wait for: events are held or discarded
  return std::any_of(routes_.begin(), routes_.end(),
                     [&](const RouteState& state) { return may_send(state); });
}

// Nothing is in flight, and nothing in memory may leave now.
bool RelayCore::nothing_moves() const {
  if (!attempts_.empty() || !complete_.empty()) return false;
  if (!may_submit()) return true;
  return std::none_of(routes_.begin(), routes_.end(), [&](const RouteState& state) {
    return state.queue.has_ready() && may_send(state);
  });
}

void RelayCore::finish_if_done() {
  if (call_ != StoreCall::none || arrived_ || !nothing_moves() || !draft_.empty()) return;
  const bool wants_more = wants_.lease || held_is_wanted() || due_is_wanted() || claim_is_wanted();
  const bool over = error_ || stopping_ || (!continuous_ && !wants_more);
  if (over) end_pass();
}

void RelayCore::end_pass() {
  for (const auto& state : routes_) {
    if (state.circuit.paused() && !state.circuit.blocked())
      report_.paused_routes.push_back(state.route.name);
  }
  report_.waiting = entries_.size();
  forget_unsettled();
  active_ = false;
  actions_.emplace_back(action::Done{std::exchange(report_, {}), std::exchange(error_, {})});
}

std::vector<Partition> RelayCore::partitions() const {
  std::vector<Partition> partitions;
  partitions.reserve(holdings_.size());
  for (const auto& [partition, holding] : holdings_)
    partitions.push_back(partition);
  return partitions;
}

std::optional<Instant> RelayCore::wake_at() const {
  if (arrived_) return now_;
  if (!active_ || call_ != StoreCall::none) return std::nullopt;
  std::optional<Instant> wake;
  const auto consider = [&](Instant at) { wake = std::min(at, wake.value_or(at)); };
  if (!error_ && (continuous_ || !holdings_.empty())) consider(renew_at_);
  if (drafted_at_) consider(*drafted_at_ + settle_delay);
  if (!partly_decided_.empty()) consider(partly_decided_.front().first);
  if (!continuous_ || stopping_ || error_ || holdings_.empty()) return wake;
  if (has_room() && any_route_may_send()) consider(claim_at_);
  if (rows_in_memory_.empty()) consider(due_at_);
  if (const auto due_at = purge_.due_at(); due_at && may_purge()) consider(*due_at);
  for (const auto& state : routes_) {
    const auto& circuit = state.circuit;
    if (circuit.paused() && !circuit.blocked() && circuit.probe_at() > now_) {
      consider(circuit.probe_at());
    }
  }
  return wake;
}

}  // namespace postrider::core
