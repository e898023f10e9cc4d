// Taking events and stored deliveries into memory.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "core/relay_core.hpp"

namespace postrider::core {
namespace {

constexpr std::string_view undecodable = job_code::undecodable;

bool contains(const std::set<OpenHead>& open_heads, const std::string& route,
              const std::optional<std::string>& key) {
  return key && !open_heads.empty() && open_heads.contains({route, *key});
}

}  // namespace

bool RelayCore::any_route_matches(std::string_view type) const {
  return std::any_of(routes_.begin(), routes_.end(),
                     [&](const RouteState& state) { return matches(state.route, type); });
}

std::optional<std::size_t> RelayCore::route_by_name(const std::string& name) const {
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    if (routes_[i].route.name == name) return i;
  }
  return std::nullopt;
}

void RelayCore::take_event(ClaimedEvent& claimed, Reading::BatchNumber batch,
                           std::optional<DeliveryId> held_row, const OpenHeads& open_heads) {
  const EntryId id = ++last_entry_;
  Entry entry;
  entry.event = claimed.event;
  entry.partition = claimed.partition;
  entry.batch = batch;
  entry.held_row = held_row;
  entries_.emplace(id, std::move(entry));

  // All items first: an item that is decided at once must not complete the entry before the others
  // are known.
  std::vector<ItemId> items;
  for (std::size_t route = 0; route < routes_.size(); ++route) {
    if (!matches(routes_[route].route, claimed.event->type)) continue;
    if (routes_[route].job) {
      add_job(id, routes_[route], claimed);
    } else {
      items.push_back(add_item(id, route));
    }
  }
  auto& taken = entries_.at(id);
  taken.undecided = items;
  if (items.empty() && !taken.has_jobs) {
    take_unrouted(id);
  } else if (items.empty()) {
    complete_.push_back(id);
  } else if (taken.has_jobs) {
    partly_decided_.emplace_back(now_ + options_.settle_patience, id);
  }
  for (const auto item : items)
    enter_queue(item, claimed, open_heads);
}

// Nothing is attempted here, so nothing can go wrong that a later attempt would mend.
void RelayCore::add_job(EntryId id, const RouteState& state, const ClaimedEvent& claimed) {
  auto& entry = entries_.at(id);
  auto row = state.job->delivery_of(*entry.event, DeliveryId(ids_->next()));
  row.partition = entry.partition;
  row.available_in = claimed.delay.value_or(milliseconds(0));
  if (!claimed.malformed.empty()) fail(row, undecodable, claimed.malformed);
  if (row.status == DeliveryStatus::failed) {
    ++report_.failed;
    auto notice = notice_about(NoticeKind::delivery_failed, entry);
    notice.route = row.route;
    notice.delivery_id = row.id;
    notice.code = row.failure_code;
    notice.detail = row.failure_detail;
    draft_.notices.push_back(std::move(notice));
    record_error({row.route, row.event_seq, row.event_id, OutcomeKind::rejected, row.failure_code,
                  row.failure_detail});
  } else {
    ++report_.jobs;
  }
  if (state.job->drops_hooks(*entry.event)) tell_of_dropped_hooks(entry, row);
  entry.rows.push_back(std::move(row));
  entry.has_jobs = true;
}

void RelayCore::tell_of_dropped_hooks(const Entry& entry, const NewDelivery& row) {
  auto notice = notice_about(NoticeKind::hooks_dropped, entry);
  notice.route = row.route;
  notice.delivery_id = row.id;
  notice.detail = "its event stands behind " + std::to_string(JobHooks::most_depth) +
                  " hooks, perhaps in a circle: what becomes of this job is told by no event";
  draft_.notices.push_back(std::move(notice));
}

ItemId RelayCore::add_item(EntryId id, std::size_t route) {
  const auto& entry = entries_.at(id);
  Item item;
  item.event = entry.event;
  item.partition = entry.partition;
  item.route = route;
  item.key = ordering_key(routes_[route].route.order, *entry.event);
  item.entry = id;
  const ItemId number = ++last_item_;
  items_.emplace(number, std::move(item));
  return number;
}

void RelayCore::take_unrouted(EntryId id) {
  auto& entry = entries_.at(id);
  auto notice = notice_about(NoticeKind::event_held, entry);
  if (options_.unrouted == Unrouted::discard) {
    ++report_.discarded;
    notice.kind = NoticeKind::event_discarded;
    notice.detail = "no route matches this type";
  } else {
    ++report_.held;
    NewDelivery row;
    row.id = DeliveryId(ids_->next());
    row.event_seq = entry.event->seq;
    row.event_id = entry.event->id;
    row.partition = entry.partition;
    row.status = DeliveryStatus::held;
    entry.rows.push_back(std::move(row));
    entry.stays_unrouted = true;
    notice.detail = "no route matches this type; it is kept until one does";
  }
  draft_.notices.push_back(std::move(notice));
  complete_.push_back(id);
}

void RelayCore::enter_queue(ItemId id, const ClaimedEvent& claimed, const OpenHeads& open_heads) {
  auto& item = items_.at(id);
  auto& state = routes_[item.route];
  if (!claimed.malformed.empty()) {
    item.row_instead = RowInstead{Outcome::rejected(undecodable, claimed.malformed), {}};
  } else if (crash_watch_.blames(item.partition, item.event->seq)) {
    item.row_instead = RowInstead{std::nullopt, {}, true};
  } else if (claimed.delay) {
    item.row_instead = RowInstead{std::nullopt, *claimed.delay};
  }
  if (contains(open_heads, state.route.name, item.key)) state.queue.block(*item.key);
  item.queued = true;
  if (state.queue.push(id, item.key) == RouteQueue::Place::behind) become_behind(id);
}

void RelayCore::take_delivery(DueDelivery& due) {
  const auto route = route_by_name(due.delivery.route);
  if (!route || rows_in_memory_.contains(due.delivery.id)) return;
  auto& state = routes_[*route];
  // The rows of a blocked lane are still being written; it is taken up when they are committed.
  if (state.queue.blocked(due.delivery.ordering_key)) return;

  ++report_.due;
  const ItemId id = ++last_item_;
  Item item;
  item.event = std::move(due.event);
  item.partition = due.partition;
  item.route = *route;
  item.key = due.delivery.ordering_key;
  item.attempts = due.delivery.attempts;
  item.ambiguous = due.delivery.ambiguous;
  item.row = std::move(due.delivery);
  rows_in_memory_.emplace(item.row->id, id);
  if (!due.malformed.empty()) {
    item.row_instead = RowInstead{Outcome::rejected(undecodable, due.malformed), {}};
  } else if (crash_watch_.blames(item.partition, item.event->seq)) {
    item.row_instead = RowInstead{std::nullopt, {}, true};
  } else if (due.overdue) {
    item.row_instead =
        RowInstead{Outcome::unknown("timed_out", "no result before the deadline"), {}};
  }
  item.queued = true;
  state.queue.push(id, item.key);
  items_.emplace(id, std::move(item));
}

std::vector<ItemId> RelayCore::items_of(Partition partition) const {
  std::vector<ItemId> found;
  for (const auto& [id, item] : items_) {
    if (item.partition == partition) found.push_back(id);
  }
  std::sort(found.begin(), found.end());  // the map's own order is chance
  return found;
}

// Whatever is in flight there may still arrive; its outcome is that of an orphan.
void RelayCore::drop_partition(Partition partition) {
  for (const auto id : items_of(partition))
    drop_item(id);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (entry->second.partition != partition) {
      ++entry;
      continue;
    }
    if (!entry->second.held_row) reading_.on_settled(entry->second.batch);
    std::erase(complete_, entry->first);
    entry = entries_.erase(entry);
  }
  drop_from(draft_, partition);
  if (settling_) drop_from(*settling_, partition);
  reading_.lose(partition);
  crash_watch_.lose(partition);
  holdings_.erase(partition);
}

void RelayCore::drop_from(SettleDraft& draft, Partition partition) {
  const auto removed = draft.remove(partition);
  for (const auto& event : removed.events)
    reading_.on_settled(event.batch);
  for (const auto& row : removed.lane_rows)
    routes_[row.route].queue.on_row_committed(row.key);
}

std::optional<ItemId> RelayCore::drop_item(ItemId id) {
  const auto& item = items_.at(id);
  auto& state = routes_[item.route];
  if (item.attempt) {
    attempts_.erase(*item.attempt);
    orphans_.emplace(*item.attempt, item.route);
  }
  std::erase_if(state.doubtful, [&](const Doubtful& doubtful) { return doubtful.item == id; });
  std::optional<ItemId> next;
  if (item.queued) next = state.queue.remove(id, item.key);
  erase_item(id);
  return next;
}

// An operator changed deliveries of this partition: what is believed about rows that have not been
// sent is read again. Those in flight are settled by compare-and-set.
void RelayCore::forget_rows_not_in_flight(Partition partition) {
  for (const auto id : items_of(partition)) {
    if (!items_.contains(id)) continue;
    const auto& item = items_.at(id);
    if (!item.row || item.attempt || is_in_doubt(id)) continue;
    const auto route = item.route;
    move_up_in_blocked_lane(route, drop_item(id));
  }
}

bool RelayCore::is_in_doubt(ItemId id) const {
  const auto& doubtful = routes_[items_.at(id).route].doubtful;
  return std::any_of(doubtful.begin(), doubtful.end(),
                     [&](const Doubtful& one) { return one.item == id; });
}

void RelayCore::forget_unsettled() {
  const bool held_again = std::any_of(entries_.begin(), entries_.end(), [](const auto& entry) {
    return entry.second.held_row.has_value();
  });
  if (held_again) {
    wants_.held = true;
    held_after_ = {};
  }
  for (auto& state : routes_) {
    state.queue.clear();
    state.doubtful.clear();
    state.returned.clear();
    state.lost_connection = false;
  }
  for (const auto& [attempt, item] : attempts_)
    orphans_.emplace(attempt, items_.at(item).route);
  attempts_.clear();
  items_.clear();
  entries_.clear();
  rows_in_memory_.clear();
  complete_.clear();
  partly_decided_.clear();
  alone_.reset();
  round_until_.reset();
  draft_ = {};
  settling_.reset();
  drafted_at_.reset();
  reading_.rewind();
}

}  // namespace postrider::core
