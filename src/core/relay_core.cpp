// Inputs: what a step changes before the next actions are planned.
#include "core/relay_core.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace postrider::core {

RelayCore::RelayCore(std::string owner, RelayOptions options, std::vector<Route> routes,
                     IdGenerator& ids, Random& random)
    : owner_(std::move(owner)),
      options_(std::move(options)),
      ids_(&ids),
      purge_(options_.retention) {
  const CircuitPolicy policy{options_.probe_least, options_.probe_most};
  routes_.reserve(routes.size());
  for (auto& route : routes) {
    std::optional<JobRoute> job;
    if (route.job) job.emplace(route);
    routes_.push_back({std::move(route),
                       std::move(job),
                       Circuit(policy, random),
                       {},
                       0,
                       {},
                       {},
                       {},
                       false,
                       std::nullopt});
  }
}

std::vector<Action> RelayCore::step(Input input, Instant now) {
  now_ = now;
  take_arrived();
  std::visit([&](auto& given) { on(given); }, input);
  if (active_) plan();
  return std::exchange(actions_, {});
}

std::vector<Lease> RelayCore::leases() const {
  std::vector<Lease> leases;
  for (const auto& [partition, holding] : holdings_)
    leases.push_back({partition, holding.token});
  return leases;
}

void RelayCore::on(input::Begin& begin) {
  POSTRIDER_ASSERT(!active_);
  active_ = true;
  continuous_ = begin.continuous;
  stopping_ = false;
  error_.reset();
  report_ = {};
  settle_failures_ = 0;
  round_until_.reset();
  wants_ = {true, wants_.held, true, true};
  claim_at_ = now_;
  due_at_ = now_;
  more_events_ = true;
  more_due_ = true;
}

void RelayCore::on(input::Tick&) {}

void RelayCore::on(input::Stop&) {
  stopping_ = true;
  wants_ = {false, wants_.held, false, false};
}

void RelayCore::on(input::Leased& leased) {
  POSTRIDER_ASSERT(call_ == StoreCall::lease);
  call_ = StoreCall::none;
  lease_until_ = leased.asked_at + options_.lease_time;
  take_leases(leased.grant);
  report_.foreign = leased.grant.foreign;
  foreign_partitions_ = !leased.grant.foreign.empty();
  // What others own may become free at any time.
  const auto pause = foreign_partitions_ || holdings_.empty()
                         ? std::min(options_.sleep, options_.lease_renewal)
                         : options_.lease_renewal;
  renew_at_ = leased.asked_at + pause;
  look_for_namesake(leased);
  if (holdings_.empty()) settle_in_question_ = false;  // others settle now
  const auto& paused = leased.grant.paused_routes;
  for (auto& state : routes_) {
    if (state.job) continue;  // nothing leaves on it; workers are held back by their queues
    const bool by_person =
        std::find(paused.begin(), paused.end(), state.route.name) != paused.end();
    const bool not_sole_owner = state.route.order == Order::global && foreign_partitions_;
    note_circuit(state, state.circuit.set_blocked(by_person || not_sole_owner ||
                                                  is_being_stopped(state.route.name)));
  }
  if (holdings_.empty()) wants_ = {};
}

// The grant was read before the settle that stops the route.
bool RelayCore::is_being_stopped(const std::string& route) const {
  const auto stops = [&](const SettleDraft& draft) {
    return std::find(draft.stopped_routes.begin(), draft.stopped_routes.end(), route) !=
           draft.stopped_routes.end();
  };
  return stops(draft_) || (settling_ && stops(*settling_));
}

void RelayCore::take_leases(const LeaseGrant& grant) {
  std::vector<Partition> missing = partitions();
  std::vector<Partition> gained;
  int crashes = 0;
  for (const auto& granted : grant.leases) {
    const auto partition = granted.lease.partition;
    std::erase(missing, partition);
    const auto held = holdings_.find(partition);
    const bool same = held != holdings_.end() && held->second.token == granted.lease.token;
    if (!same) {
      if (held != holdings_.end()) drop_partition(partition);
      gain_partition(granted);
      gained.push_back(partition);
      crashes = std::max(crashes, granted.suspicion.crashes);
    } else if (held->second.generation != granted.generation) {
      held->second.generation = granted.generation;
      forget_rows_not_in_flight(partition);
      wants_.due = !stopping_;
    }
    take_suspicion(granted, !same);
  }
  for (const auto partition : missing)
    drop_partition(partition);
  tell_of_partitions(NoticeKind::lease_gained, gained, crashes);
  tell_of_partitions(NoticeKind::lease_lost, missing);
  tell_of_suspicion();
}

// One notice for all of them: a relay that starts may gain hundreds.
void RelayCore::tell_of_partitions(NoticeKind kind, const std::vector<Partition>& partitions,
                                   int crashes) {
  if (partitions.empty()) return;
  Notice notice;
  notice.kind = kind;
  if (partitions.size() == 1) notice.partition = partitions.front();
  notice.detail =
      std::to_string(partitions.size()) + (partitions.size() == 1 ? " partition" : " partitions");
  if (crashes > 0) {
    notice.crashes = crashes;
    notice.detail += " of an owner that did not release";
  }
  notify(std::move(notice));
}

// Names are labels, so both go on working; but logs and `status` cannot tell them apart.
void RelayCore::look_for_namesake(const input::Leased& leased) {
  const auto& foreign = leased.grant.foreign;
  const auto found = std::find_if(foreign.begin(), foreign.end(),
                                  [&](const auto& lease) { return is_namesake(lease.owner); });
  if (namesake_.told || found == foreign.end()) return;
  const auto end = leased.asked_at + found->remaining;
  if (namesake_.owner != found->owner) namesake_ = {found->owner, end};
  if (end <= namesake_.first_end + options_.lease_time) return;
  namesake_.told = true;
  Notice notice;
  notice.kind = NoticeKind::name_shared;
  notice.detail = "another relay works under the name '" + options_.name +
                  "'; give each one a [relay] name of its own";
  notify(std::move(notice));
}

// An owner is a name, a hyphen and a UUID.
bool RelayCore::is_namesake(const std::string& owner) const {
  constexpr std::size_t uuid_length = 36;
  const auto& name = options_.name;
  return owner != owner_ && owner.size() == name.size() + 1 + uuid_length &&
         owner.starts_with(name + "-");
}

void RelayCore::gain_partition(const GrantedLease& granted) {
  holdings_[granted.lease.partition] = {granted.lease.token, granted.generation};
  reading_.gain(granted.lease.partition, granted.mark);
  wants_.held = true;
  held_after_ = {};
}

// While a thousand events are taken up, the database can settle the thousand before them: then they
// are taken up in the next step, before anything else.
void RelayCore::on(input::Claimed& claimed) {
  POSTRIDER_ASSERT(call_ == StoreCall::claim);
  call_ = StoreCall::none;
  claim_before_settle_ = false;
  const bool settle_first = settle_is_due();
  arrived_ = std::move(claimed.batch);
  if (!settle_first) take_arrived();
}

void RelayCore::take_arrived() {
  if (!arrived_) return;
  auto batch = *std::exchange(arrived_, std::nullopt);
  const auto number = reading_.on_claimed(std::move(batch.mark), batch.events.size());
  const OpenHeads open_heads(batch.open_heads.begin(), batch.open_heads.end());
  for (auto& event : batch.events)
    take_event(event, number, std::nullopt, open_heads);
  report_.claimed += batch.events.size();
  report_.more = report_.more || batch.more;
  more_events_ = batch.more;
  claim_at_ = batch.more ? now_ : now_ + options_.sleep;
}

void RelayCore::on(input::TookDue& took) {
  POSTRIDER_ASSERT(call_ == StoreCall::due);
  call_ = StoreCall::none;
  auto& batch = took.batch;
  for (auto& due : batch.deliveries)
    take_delivery(due);
  report_.more = report_.more || batch.more;
  more_due_ = batch.more;
  if (batch.next_in) note_next_due(*batch.next_in);
  due_at_ =
      batch.more ? now_ : now_ + std::min(options_.sleep, batch.next_in.value_or(options_.sleep));
}

void RelayCore::on(input::TookHeld& took) {
  POSTRIDER_ASSERT(call_ == StoreCall::held);
  call_ = StoreCall::none;
  const OpenHeads open_heads(took.batch.open_heads.begin(), took.batch.open_heads.end());
  for (auto& held : took.batch.events) {
    held_after_ = held.claimed.event->seq;
    if (!any_route_matches(held.claimed.event->type)) continue;  // goes on waiting
    take_event(held.claimed, 0, held.delivery, open_heads);
  }
  wants_.held = took.batch.events.size() >= read_limit();
}

void RelayCore::on(input::Settled& settled) {
  POSTRIDER_ASSERT(call_ == StoreCall::settle && settling_);
  call_ = StoreCall::none;
  claim_before_settle_ = continuous_;
  settle_failures_ = 0;
  auto draft = std::move(*settling_);
  settling_.reset();
  if (!settled.result.lost.empty()) {
    draft.append(std::exchange(draft_, {}));
    draft_ = std::move(draft);
    for (const auto partition : settled.result.lost)
      drop_partition(partition);
    tell_of_partitions(NoticeKind::lease_lost, settled.result.lost);
    tell_of_suspicion();
    wants_.lease = true;
    return;
  }
  on_committed(draft, settled.result);
}

void RelayCore::on_committed(const SettleDraft& draft, const SettleResult& result) {
  if (draft.size() > 0) settle_in_question_ = false;
  for (const auto& event : draft.events)
    reading_.on_settled(event.batch);
  for (const auto& row : draft.lane_rows)
    routes_[row.route].queue.on_row_committed(row.key);
  for (const auto& notice : draft.notices)
    notify(notice);
  if (draft.mark) {
    reading_.on_stored(*draft.mark);
    mark_stored_at_ = now_;
  }
  crash_watch_.on_stored(draft.suspicions);
  tell_of_suspicion();
  for (const auto& id : result.stale_deliveries) {
    Notice notice;
    notice.kind = NoticeKind::result_stale;
    notice.delivery_id = id;
    notice.detail = "the delivery was changed by somebody else; this result is not recorded";
    notify(std::move(notice));
  }
}

void RelayCore::on(input::StoreFailed& failed) {
  const auto call = std::exchange(call_, StoreCall::none);
  const bool repeatable = failed.error.disposition != Disposition::stop;
  if (call == StoreCall::settle && repeatable && ++settle_failures_ < most_settle_failures) return;
  if (call == StoreCall::settle) {
    settle_in_question_ = true;
    settling_.reset();
    draft_ = {};
  }
  error_ = std::move(failed.error);
  wants_ = {};
}

void RelayCore::on(input::Outcomes& arrived) {
  for (auto& outcome : arrived.outcomes)
    on_outcome(outcome);
  for (auto& state : routes_) {
    resolve_doubts(state);
    give_back_returned(state);
  }
}

void RelayCore::on(input::Purged& purged) {
  if (auto notice = purge_.on_slice(purged.slice, now_)) notify(*std::move(notice));
}

void RelayCore::on(input::PurgeFailed& failed) {
  if (auto notice = purge_.on_failure(failed.error, now_)) notify(*std::move(notice));
}

// What is in flight becomes an orphan, and what was not settled is read again by the next pass.
void RelayCore::on(input::Abandon&) {
  POSTRIDER_ASSERT(active_ && call_ == StoreCall::none);
  end_pass();
}

// A defect, no outage: the pass ends with it, and what was in flight stays in the table.
void RelayCore::on(input::PublisherFailed& failed) {
  std::erase_if(attempts_, [&](const auto& attempt) {
    return items_.at(attempt.second).route == failed.route;
  });
  std::erase_if(orphans_, [&](const auto& orphan) { return orphan.second == failed.route; });
  routes_[failed.route].in_flight = 0;
  error_ = std::move(failed.error);
  wants_ = {};
}

void RelayCore::note_next_due(milliseconds wait) {
  report_.next_due_in = std::min(wait, report_.next_due_in.value_or(wait));
}

}  // namespace postrider::core
