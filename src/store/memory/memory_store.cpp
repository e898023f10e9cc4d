#include <algorithm>
#include <charconv>
#include <utility>

#include "base/assert.hpp"
#include "store/memory/memory_database.hpp"
#include "store/memory/memory_events.hpp"
#include "values/lease_bounds.hpp"

namespace postrider::testing {
namespace {

constexpr std::string_view origin = "memory";

template <class T>
bool contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// How long from `now` on; never negative.
milliseconds until(Timestamp at, Timestamp now) {
  return std::max(std::chrono::ceil<milliseconds>(at - now), milliseconds::zero());
}

/// A mark is the seq up to which everything was read, in decimal.
Result<Seq> seq_of(const ReadMark& mark) {
  const auto& text = mark.text();
  if (text.empty()) return Seq(0);
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) {
    return Error{ErrorCode::invalid_argument, Disposition::stop,
                 "the read mark is not one of this store. Start from a default-constructed mark.",
                 std::string(origin), ""};
  }
  return Seq(value);
}

ReadMark mark_at(Seq seq) {
  return ReadMark(std::to_string(seq.value()));
}

/// Counts rows and payload bytes against the limits of a batch.
class Budget {
 public:
  Budget(std::size_t rows, std::size_t bytes)
      : rows_(std::max<std::size_t>(rows, 1)), bytes_(bytes) {}

  /// The first row is taken whatever it weighs.
  bool take(std::size_t weight) {
    if (taken_ > 0 && (taken_ == rows_ || weight > bytes_ - std::min(bytes_, weight_)))
      return false;
    ++taken_;
    weight_ += weight;
    return true;
  }

 private:
  std::size_t rows_;
  std::size_t bytes_;
  std::size_t taken_ = 0;
  std::size_t weight_ = 0;
};

ClaimedEvent claimed(const EventRow& row, Timestamp now) {
  ClaimedEvent event;
  event.event = row.event;
  event.partition = row.partition;
  if (row.event->available_at && *row.event->available_at > now) {
    event.delay = until(*row.event->available_at, now);
  }
  event.malformed = row.malformed;
  return event;
}

/// Of `keys` and the global key, those with a blocking delivery.
std::vector<OpenHead> open_heads(const Tables& tables, std::set<std::string> keys) {
  keys.emplace(global_ordering_key);
  std::set<OpenHead> heads;
  for (const auto* delivery : tables.open_deliveries()) {
    if (!delivery->ordering_key || !keys.contains(*delivery->ordering_key)) continue;
    if (blocks(*delivery)) heads.insert({delivery->route, *delivery->ordering_key});
  }
  return {heads.begin(), heads.end()};
}

void collect_key(std::set<std::string>& keys, const Event& event) {
  if (event.aggregate) keys.insert(aggregate_key(*event.aggregate));
}

bool holds(const PartitionRow& row, FencingToken token) {
  return !row.owner.empty() && row.token == token;
}

/// Sets what follows from a delivery's status.
void stamp(Delivery& delivery, milliseconds available_in, Timestamp now) {
  const bool dispatched = delivery.status == DeliveryStatus::dispatched;
  delivery.delivery_timeout_at.reset();
  delivery.finished_at.reset();
  if (dispatched) {
    delivery.dispatched_at = now;
    delivery.delivery_timeout_at = now + delivery.timeout;
  } else if (delivery.status == DeliveryStatus::pending) {
    delivery.available_at = now + available_in;
  } else if (delivery.status != DeliveryStatus::held) {
    delivery.finished_at = now;
  }
}

Delivery to_delivery(const NewDelivery& stored, Timestamp now) {
  Delivery delivery;
  delivery.id = stored.id;
  delivery.event_seq = stored.event_seq;
  delivery.event_id = stored.event_id;
  delivery.route = stored.route;
  delivery.ordering_key = stored.ordering_key;
  delivery.status = stored.status;
  delivery.attempts = stored.attempts;
  delivery.retry_delays = stored.retry_delays;
  delivery.timeout = stored.timeout;
  delivery.on_failed = stored.on_failed;
  delivery.dispatch_id = stored.dispatch_id;
  delivery.available_at = now;
  delivery.failure_code = stored.failure_code;
  delivery.failure_detail = stored.failure_detail;
  delivery.ambiguous = stored.ambiguous;
  stamp(delivery, stored.available_in, now);
  return delivery;
}

/// False when the row is not the one that the relay believes to see.
bool apply(Tables& tables, const DeliveryUpdate& update, Timestamp now) {
  const auto* row = tables.find_delivery(update.id);
  if (row == nullptr || row->status != update.expected_status ||
      row->dispatch_id != update.expected_dispatch_id) {
    return false;
  }
  Delivery delivery = *row;
  delivery.status = update.status;
  delivery.attempts = update.attempts;
  delivery.dispatch_id = update.dispatch_id;
  delivery.failure_code = update.failure_code;
  delivery.failure_detail = update.failure_detail;
  delivery.ambiguous = update.ambiguous;
  stamp(delivery, update.available_in, now);
  tables.write_delivery(std::move(delivery));
  return true;
}

/// Reads `due` in one walk over the open deliveries.
class DueReader {
 public:
  DueReader(const Tables& tables, const DueRequest& request, Timestamp now)
      : tables_(tables), request_(request), now_(now), budget_(request.limit, request.bytes) {}

  DueBatch read() {
    for (const auto* delivery : tables_.open_deliveries()) {
      if (!contains(request_.routes, delivery->route) || !blocks(*delivery)) continue;
      if (tables_.find_job(delivery->id) != nullptr) continue;  // those are taken by workers
      if (is_behind(*delivery)) continue;
      if (!take(*delivery)) block(*delivery);
    }
    return std::move(batch_);
  }

 private:
  [[nodiscard]] bool is_behind(const Delivery& delivery) const {
    return delivery.ordering_key && blocked_.contains({delivery.route, *delivery.ordering_key});
  }

  void block(const Delivery& delivery) {
    if (delivery.ordering_key) blocked_.insert({delivery.route, *delivery.ordering_key});
  }

  /// False when the row has to stay where it is, and with it all that queue behind it.
  bool take(const Delivery& delivery) {
    const auto& row = tables_.event_of(delivery);
    if (!contains(request_.partitions, row.partition)) return false;
    const auto due_at = due_time(delivery);
    if (!due_at) return false;
    if (*due_at > now_) {
      const auto wait = until(*due_at, now_);
      batch_.next_in = std::min(batch_.next_in.value_or(wait), wait);
      return false;
    }
    // Once a row did not fit, no later one is taken: a run must not lose its middle.
    if (batch_.more || !budget_.take(row.event->payload.size())) {
      batch_.more = true;
      return false;
    }
    batch_.deliveries.push_back(
        {delivery, row.event, row.partition, is_overdue(delivery, now_), row.malformed});
    return true;
  }

  static std::optional<Timestamp> due_time(const Delivery& delivery) {
    if (delivery.status == DeliveryStatus::pending) return delivery.available_at;
    return delivery.status == DeliveryStatus::dispatched ? delivery.delivery_timeout_at
                                                         : std::nullopt;
  }

  const Tables& tables_;
  const DueRequest& request_;
  Timestamp now_;
  Budget budget_;
  DueBatch batch_;
  std::set<OpenHead> blocked_;
};

/// Requires: every partition in the request has its lease.
void assert_leases(const SettleRequest& request) {
  std::set<Partition> leased;
  for (const auto& lease : request.leases)
    leased.insert(lease.partition);
  const auto is_leased = [&](const auto& row) { return leased.contains(row.partition); };
  POSTRIDER_ASSERT(std::all_of(request.routed.begin(), request.routed.end(), is_leased));
  POSTRIDER_ASSERT(std::all_of(request.deliveries.begin(), request.deliveries.end(), is_leased));
  POSTRIDER_ASSERT(std::all_of(request.updates.begin(), request.updates.end(), is_leased));
  POSTRIDER_ASSERT(std::all_of(request.suspicions.begin(), request.suspicions.end(), is_leased));
}

/// One settle transaction, after its tokens were compared.
class Settling {
 public:
  Settling(Tables& tables, const SettleRequest& request, Timestamp now)
      : tables_(tables), request_(request), now_(now) {}

  SettleResult run() {
    mark_routed();
    store_deliveries();
    update_deliveries();
    release_held();
    tables_.paused_routes().insert(request_.stopped_routes.begin(), request_.stopped_routes.end());
    if (request_.mark) {
      for (const auto& lease : request_.leases) {
        tables_.partition(lease.partition).mark = *request_.mark;
      }
    }
    for (const auto& [partition, suspicion] : request_.suspicions)
      tables_.partition(partition).suspicion = suspicion;
    return std::move(result_);
  }

 private:
  void mark_routed() {
    for (const auto& routed : request_.routed) {
      const auto row = tables_.events().find(routed.seq);
      if (row == tables_.events().end() || row->second.routed_at) {
        result_.stale_events.push_back(routed.seq);
      } else {
        row->second.routed_at = now_;
      }
    }
  }

  void store_deliveries() {
    const std::set<Seq> stale(result_.stale_events.begin(), result_.stale_events.end());
    for (const auto& delivery : request_.deliveries) {
      if (stale.contains(delivery.event_seq)) continue;
      // A row that is there already comes from an earlier try of this request.
      if (delivery.job) {
        JobColumns job;
        job.policy = delivery.job->policy;
        job.transport = delivery.job->transport;
        tables_.insert_job(to_delivery(delivery, now_), std::move(job));
      } else {
        tables_.insert_delivery(to_delivery(delivery, now_));
      }
    }
  }

  void update_deliveries() {
    for (const auto& update : request_.updates) {
      if (!apply(tables_, update, now_)) result_.stale_deliveries.push_back(update.id);
    }
  }

  void release_held() {
    for (const auto& id : request_.released) {
      const auto* row = tables_.find_delivery(id);
      if (row != nullptr && row->status == DeliveryStatus::held) tables_.erase_delivery(id);
    }
  }

  Tables& tables_;
  const SettleRequest& request_;
  Timestamp now_;
  SettleResult result_;
};

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(std::shared_ptr<MemoryDatabase> database) : database_(std::move(database)) {}

  StoreTraits traits() const override {
    const MutexLock lock(database_->mutex);
    StoreTraits traits;
    traits.name = origin;
    traits.partitions = static_cast<std::int32_t>(database_->tables.partitions().size());
    traits.durable = false;
    return traits;
  }

  Result<void> check_schema(Deadline /*deadline*/) override { return {}; }

  Result<std::vector<EventId>> add(std::span<const NewEvent> events,
                                   Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    return insert_events(*database_, events);
  }

  Result<EventId> add_once(const NewEvent& event, const IdempotencyKey& key,
                           Deadline /*deadline*/) override;

  Result<LeaseGrant> lease(const LeaseRequest& request, Deadline /*deadline*/) override;

  Result<void> release(std::span<const Lease> leases, Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    for (const auto& lease : leases) {
      auto& row = database_->tables.partition(lease.partition);
      if (!holds(row, lease.token)) continue;
      row.owner.clear();
      row.suspicion = {};
    }
    return {};
  }

  Result<ClaimedBatch> claim(const ClaimRequest& request, Deadline /*deadline*/) override;

  Result<DueBatch> due(const DueRequest& request, Deadline /*deadline*/) override {
    const MutexLock lock(database_->mutex);
    return DueReader(database_->tables, request, database_->time_of(request.now)).read();
  }

  Result<HeldBatch> held(const HeldRequest& request, Deadline /*deadline*/) override;

  Result<SettleResult> settle(const SettleRequest& request, Deadline /*deadline*/) override {
    assert_leases(request);
    const MutexLock lock(database_->mutex);
    SettleResult refused;
    for (const auto& lease : request.leases) {
      const auto& row = database_->tables.partition(lease.partition);
      if (!holds(row, lease.token)) refused.lost.push_back(lease.partition);
    }
    if (!refused.lost.empty()) return refused;
    return Settling(database_->tables, request, database_->time_of(request.now)).run();
  }

 private:
  std::shared_ptr<MemoryDatabase> database_;
};

Result<EventId> MemoryStore::add_once(const NewEvent& event, const IdempotencyKey& key,
                                      Deadline /*deadline*/) {
  if (auto checked = check(key); !checked) return checked.error();
  const MutexLock lock(database_->mutex);
  const auto hash = content_hash(event);
  auto& keys = database_->tables.keys();
  if (const auto taken = keys.find({key.scope, key.key}); taken != keys.end()) {
    if (taken->second.content_hash == hash) return taken->second.event_id;
    return Error{ErrorCode::key_reused, Disposition::reject,
                 "the idempotency key was used before, for an event with other content. Use a new "
                 "key for a new request.",
                 std::string(origin), ""};
  }
  const auto written = insert_events(*database_, {&event, 1});
  if (!written) return written.error();
  const auto now = database_->time_of(std::nullopt);
  keys.emplace(std::pair(key.scope, key.key), KeyRow{written->front(), hash, now});
  return written->front();
}

Result<LeaseGrant> MemoryStore::lease(const LeaseRequest& request, Deadline /*deadline*/) {
  const MutexLock lock(database_->mutex);
  auto& tables = database_->tables;
  auto& rows = tables.partitions();
  const auto now = database_->time_of(request.now);
  auto owned = static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [&](const auto& row) { return row.owner == request.owner; }));

  LeaseGrant grant;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto& row = rows[i];
    const Partition partition(static_cast<std::int32_t>(i));
    const bool renewed = row.owner == request.owner;
    const bool free =
        row.owner.empty() || row.leased_until <= now || row.leased_until > now + most_lease_time;
    if (!renewed && !(free && owned < request.at_most)) {
      if (!free) grant.foreign.push_back({partition, row.owner, until(row.leased_until, now)});
      continue;
    }
    if (!renewed) {
      if (!row.owner.empty()) ++row.suspicion.crashes;
      row.owner = request.owner;
      row.token = FencingToken(row.token.value() + 1);
      ++owned;
    }
    row.leased_until = now + request.lease_time;
    grant.leases.push_back(
        {{partition, row.token}, !renewed, row.mark, row.generation, row.suspicion});
  }
  const auto& paused = tables.paused_routes();
  grant.paused_routes.assign(paused.begin(), paused.end());
  return grant;
}

Result<ClaimedBatch> MemoryStore::claim(const ClaimRequest& request, Deadline /*deadline*/) {
  Seq least(0);
  Seq most(0);
  for (std::size_t i = 0; i < request.after.size(); ++i) {
    const auto after = seq_of(request.after[i]);
    if (!after) return after.error();
    least = i == 0 ? *after : std::min(least, *after);
    most = std::max(most, *after);
  }

  const MutexLock lock(database_->mutex);
  const auto& tables = database_->tables;
  const auto now = database_->time_of(request.now);
  Budget budget(request.limit, request.bytes);
  ClaimedBatch batch;
  std::set<std::string> keys;
  Seq read_up_to = least;
  for (auto row = tables.events().upper_bound(least); row != tables.events().end(); ++row) {
    const auto& [seq, event] = *row;
    const bool wanted =
        !event.routed_at && contains(request.partitions, event.partition) && !tables.is_held(seq);
    if (wanted && !budget.take(event.event->payload.size())) {
      batch.more = true;
      break;
    }
    read_up_to = seq;
    if (!wanted) continue;
    collect_key(keys, *event.event);
    batch.events.push_back(claimed(event, now));
  }
  // The rows behind the furthest mark may all be gone; a mark never goes back without a row to
  // read.
  batch.mark = mark_at(batch.more ? read_up_to : std::max(read_up_to, most));
  batch.open_heads = open_heads(tables, std::move(keys));
  return batch;
}

Result<HeldBatch> MemoryStore::held(const HeldRequest& request, Deadline /*deadline*/) {
  const MutexLock lock(database_->mutex);
  const auto& tables = database_->tables;
  const auto now = database_->time_of(request.now);
  HeldBatch batch;
  std::set<std::string> keys;
  for (const auto* delivery : tables.open_deliveries()) {
    if (delivery->status != DeliveryStatus::held || delivery->event_seq <= request.after) continue;
    const auto& row = tables.event_of(*delivery);
    if (!contains(request.partitions, row.partition)) continue;
    if (batch.events.size() == request.limit) break;
    collect_key(keys, *row.event);
    batch.events.push_back({claimed(row, now), delivery->id});
  }
  batch.open_heads = open_heads(tables, std::move(keys));
  return batch;
}

}  // namespace

std::unique_ptr<Store> make_memory_store(std::shared_ptr<MemoryDatabase> database) {
  return std::make_unique<MemoryStore>(std::move(database));
}

}  // namespace postrider::testing
