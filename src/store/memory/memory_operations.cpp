#include <algorithm>
#include <tuple>
#include <utility>

#include "store/memory/memory_database.hpp"
#include "store/memory/memory_listing.hpp"

namespace postrider::testing {
namespace {

constexpr std::size_t most_dead_letters = 100'000;

milliseconds age(Timestamp since, Timestamp now) {
  return std::max(std::chrono::duration_cast<milliseconds>(now - since), milliseconds::zero());
}

void keep_older(std::optional<milliseconds>& oldest, milliseconds age) {
  oldest = std::max(oldest.value_or(age), age);
}

bool is_dead(const Delivery& delivery) {
  return delivery.status == DeliveryStatus::failed;
}

bool matches(const DeadFilter& filter, const Delivery& delivery, const Event& event) {
  if (!filter.ids.empty() &&
      std::find(filter.ids.begin(), filter.ids.end(), delivery.id) == filter.ids.end()) {
    return false;
  }
  if (filter.after && std::tie(delivery.event_seq, delivery.route) <=
                          std::tie(filter.after->event_seq, filter.after->route)) {
    return false;
  }
  return (!filter.route || *filter.route == delivery.route) &&
         (!filter.event_type || *filter.event_type == event.type) &&
         (!filter.failure_code || *filter.failure_code == delivery.failure_code) &&
         (!filter.ambiguous || *filter.ambiguous == delivery.ambiguous);
}

Result<void> check(const DeadFilter& filter) {
  if (filter.limit >= 1 && filter.limit <= most_dead_letters) return {};
  return Error{filter.limit == 0 ? ErrorCode::invalid_argument : ErrorCode::limit_exceeded,
               Disposition::reject,
               "the limit is " + std::to_string(filter.limit) + ". Give 1 to " +
                   std::to_string(most_dead_letters) + ".",
               "memory", ""};
}

/// Copies, because the caller changes what it was read from.
std::vector<Delivery> find_dead(const Tables& tables, const DeadFilter& filter) {
  std::vector<Delivery> found;
  for (const auto* delivery : tables.open_deliveries()) {
    if (found.size() == filter.limit) break;
    if (is_dead(*delivery) && matches(filter, *delivery, *tables.event_of(*delivery).event)) {
      found.push_back(*delivery);
    }
  }
  return found;
}

Delivery next_generation(const Delivery& dead, DeliveryId id, Timestamp now) {
  Delivery next;
  next.id = id;
  next.event_seq = dead.event_seq;
  next.event_id = dead.event_id;
  next.route = dead.route;
  next.ordering_key = dead.ordering_key;
  next.retry_delays = dead.retry_delays;
  next.timeout = dead.timeout;
  next.on_failed = dead.on_failed;
  next.available_at = now;
  next.generation = dead.generation + 1;
  return next;
}

/// The same policy, with fresh counters.
JobColumns next_generation(const JobColumns& dead) {
  JobColumns next;
  next.policy = dead.policy;
  next.transport = dead.transport;
  next.checkpoint = dead.checkpoint;
  return next;
}

/// False when `dead` has to stay as it is: it is a job, and an open one has its unique key.
bool retry(Tables& tables, const Delivery& dead, DeliveryId id, Timestamp now) {
  const auto* const job = tables.find_job(dead.id);
  if (job == nullptr) return tables.insert_delivery(next_generation(dead, id, now));
  return tables.insert_job(next_generation(dead, id, now), next_generation(*job));
}

Delivery discarded(Delivery dead, Timestamp now) {
  dead.status = DeliveryStatus::discarded;
  dead.finished_at = now;
  return dead;
}

EventCounts count_events(const Tables& tables, Timestamp now) {
  EventCounts counts;
  for (const auto& [seq, row] : tables.events()) {
    ++counts.total;
    if (row.routed_at) continue;
    ++counts.unrouted;
    keep_older(counts.oldest_unrouted_age, age(row.event->created_at, now));
  }
  return counts;
}

void count_pending(DeliveryCounts& counts, const Delivery& delivery, Timestamp now) {
  if (delivery.available_at > now) {
    ++counts.delayed;
    return;
  }
  ++counts.due;
  keep_older(counts.oldest_due_age, age(delivery.available_at, now));
}

void count_dispatched(DeliveryCounts& counts, const Delivery& delivery, Timestamp now) {
  ++counts.dispatched;
  if (is_overdue(delivery, now)) ++counts.overdue;
  keep_older(counts.oldest_dispatched_age, age(delivery.dispatched_at.value_or(now), now));
}

void count(DeliveryCounts& counts, const Delivery& delivery, bool superseded, Timestamp now) {
  counts.retries += delivery.attempts;
  switch (delivery.status) {
    case DeliveryStatus::held:
      ++counts.held;
      break;
    case DeliveryStatus::pending:
      count_pending(counts, delivery, now);
      break;
    case DeliveryStatus::dispatched:
      count_dispatched(counts, delivery, now);
      break;
    case DeliveryStatus::completed:
      ++counts.completed;
      break;
    case DeliveryStatus::failed:
      counts.failed += superseded ? 0 : 1;
      break;
    case DeliveryStatus::discarded:
      ++counts.discarded;
      break;
    case DeliveryStatus::cancelled:
      ++counts.cancelled;
      break;
  }
}

std::vector<DeliveryCounts> count_deliveries(const Tables& tables, Timestamp now) {
  std::map<std::string, DeliveryCounts> routes;
  for (const auto& [key, delivery] : tables.deliveries()) {
    auto& counts = routes[delivery.route];
    counts.route = delivery.route;
    count(counts, delivery, tables.is_superseded(key), now);
  }
  std::vector<DeliveryCounts> counted;
  counted.reserve(routes.size());
  for (auto& [route, counts] : routes)
    counted.push_back(std::move(counts));
  return counted;
}

std::vector<PartitionState> partition_states(const Tables& tables, Timestamp now) {
  std::vector<PartitionState> states;
  for (const auto& row : tables.partitions()) {
    PartitionState state;
    state.partition = Partition(static_cast<std::int32_t>(states.size()));
    if (!row.owner.empty() && row.leased_until > now) {
      state.owner = row.owner;
      state.remaining = std::chrono::ceil<milliseconds>(row.leased_until - now);
    } else if (!row.owner.empty()) {
      state.lapsed = age(row.leased_until, now);
    }
    state.suspicion = row.suspicion;
    states.push_back(std::move(state));
  }
  return states;
}

class MemoryOperations final : public Operations {
 public:
  explicit MemoryOperations(std::shared_ptr<MemoryDatabase> database)
      : database_(std::move(database)) {}

  Result<Status> status(std::optional<Timestamp> now, Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    const auto& tables = database_->tables;
    const auto at = database_->time_of(now);
    Status status;
    status.events = count_events(tables, at);
    status.routes = count_deliveries(tables, at);
    status.partitions = partition_states(tables, at);
    status.paused_routes = {tables.paused_routes().begin(), tables.paused_routes().end()};
    return status;
  }

  Result<EventPage> events(const EventFilter& filter, std::optional<Timestamp> now,
                           Deadline /*deadline*/) override {
    if (auto checked = postrider::check(filter); !checked) return checked.error();
    const MutexLock lock(database_->mutex);
    return list_events(database_->tables, filter, database_->time_of(now));
  }

  Result<std::optional<EventDetail>> event(const EventId& id, bool with_payload,
                                           Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    return show_event(database_->tables, id, with_payload);
  }

  Result<DeliveryPage> deliveries(const DeliveryFilter& filter, std::optional<Timestamp> now,
                                  Deadline /*deadline*/) override {
    if (auto checked = postrider::check(filter); !checked) return checked.error();
    const MutexLock lock(database_->mutex);
    return list_deliveries(database_->tables, filter, database_->time_of(now));
  }

  Result<std::vector<DeadLetter>> dead_letters(const DeadFilter& filter,
                                               Deadline /*deadline*/) override {
    if (auto checked = check(filter); !checked) return checked.error();
    const MutexLock lock(database_->mutex);
    const auto& tables = database_->tables;
    std::vector<DeadLetter> letters;
    for (auto& delivery : find_dead(tables, filter)) {
      const auto event = tables.event_of(delivery).event;
      letters.push_back({std::move(delivery), event->type,
                         event->aggregate ? aggregate_key(*event->aggregate) : ""});
    }
    return letters;
  }

  Result<std::vector<DeliveryId>> dead_retry(const DeadFilter& filter, const Operator& who,
                                             std::optional<Timestamp> now,
                                             Deadline /*deadline*/) override {
    if (auto checked = check(filter); !checked) return checked.error();
    const MutexLock lock(database_->mutex);
    auto& tables = database_->tables;
    const auto at = database_->time_of(now);
    std::vector<DeliveryId> made;
    std::set<Partition> touched;
    for (const auto& dead : find_dead(tables, filter)) {
      const DeliveryId next(database_->ids.next());
      if (!retry(tables, dead, next, at)) continue;
      made.push_back(next);
      touched.insert(tables.event_of(dead).partition);
      tables.audit().push_back({at, "dead_retry", dead.id.value().to_string(), who});
    }
    summarize(tables, {at, "dead_retry", who.filter, who}, made.size());
    bump(tables, touched);
    return made;
  }

  Result<std::vector<DeliveryId>> dead_discard(const DeadFilter& filter, const Operator& who,
                                               std::optional<Timestamp> now,
                                               Deadline /*deadline*/) override {
    if (auto checked = check(filter); !checked) return checked.error();
    const MutexLock lock(database_->mutex);
    auto& tables = database_->tables;
    const auto at = database_->time_of(now);
    std::vector<DeliveryId> ended;
    std::set<Partition> touched;
    for (const auto& dead : find_dead(tables, filter)) {
      ended.push_back(dead.id);
      tables.write_delivery(discarded(dead, at));
      touched.insert(tables.event_of(dead).partition);
      tables.audit().push_back({at, "dead_discard", dead.id.value().to_string(), who});
    }
    summarize(tables, {at, "dead_discard", who.filter, who}, ended.size());
    bump(tables, touched);
    return ended;
  }

  Result<bool> route_pause(const std::string& route, const Operator& who,
                           std::optional<Timestamp> now, Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    auto& tables = database_->tables;
    if (!tables.paused_routes().insert(route).second) return false;
    tables.audit().push_back({database_->time_of(now), "route_pause", route, who});
    return true;
  }

  Result<bool> route_resume(const std::string& route, const Operator& who,
                            std::optional<Timestamp> now, Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    auto& tables = database_->tables;
    if (tables.paused_routes().erase(route) == 0) return false;
    tables.audit().push_back({database_->time_of(now), "route_resume", route, who});
    return true;
  }

 private:
  static void summarize(Tables& tables, AuditEntry line, std::size_t changed) {
    if (!line.subject.empty() && changed > 0) tables.audit().push_back(std::move(line));
  }

  static void bump(Tables& tables, const std::set<Partition>& touched) {
    for (const auto partition : touched)
      ++tables.partition(partition).generation;
  }

  std::shared_ptr<MemoryDatabase> database_;
};

}  // namespace

std::unique_ptr<Operations> make_memory_operations(std::shared_ptr<MemoryDatabase> database) {
  return std::make_unique<MemoryOperations>(std::move(database));
}

}  // namespace postrider::testing
