#include "store/memory/memory_database.hpp"

#include <utility>

#include "base/assert.hpp"

namespace postrider::testing {

Seq Tables::insert_event(Event event, std::string malformed) {
  const Seq seq(++last_seq_);
  event.seq = seq;
  event_ids_.insert(event.id);
  if (event.aggregate && event.aggregate_version) {
    versions_.emplace(*event.aggregate, *event.aggregate_version);
  }
  const auto slot = event.aggregate ? slot_of(*event.aggregate) : slot_of(event.id);
  EventRow row;
  row.partition = Partition(slot % static_cast<std::int32_t>(partitions_.size()));
  row.event = std::make_shared<const Event>(std::move(event));
  row.malformed = std::move(malformed);
  events_.emplace(seq, std::move(row));
  return seq;
}

void Tables::erase_event(Seq seq) {
  const auto event = events_.at(seq).event;
  auto delivery = deliveries_.lower_bound({seq, "", 0});
  while (delivery != deliveries_.end() && delivery->first.event_seq == seq) {
    delivery_ids_.erase(delivery->second.id);
    jobs_.erase(delivery->second.id);
    open_.erase(delivery->first);
    delivery = deliveries_.erase(delivery);
  }
  event_ids_.erase(event->id);
  if (event->aggregate && event->aggregate_version) {
    versions_.erase({*event->aggregate, *event->aggregate_version});
  }
  events_.erase(seq);
}

bool Tables::insert_delivery(Delivery delivery) {
  POSTRIDER_ASSERT(events_.contains(delivery.event_seq));
  const auto key = key_of(delivery);
  if (delivery_ids_.contains(delivery.id) || deliveries_.contains(key)) return false;
  delivery_ids_.emplace(delivery.id, key);
  if (key.generation > 1) open_.erase({key.event_seq, key.route, key.generation - 1});
  index(deliveries_.emplace(key, std::move(delivery)).first->second);
  return true;
}

const Delivery* Tables::find_delivery(const DeliveryId& id) const {
  const auto key = delivery_ids_.find(id);
  return key == delivery_ids_.end() ? nullptr : &deliveries_.at(key->second);
}

void Tables::write_delivery(Delivery delivery) {
  auto& row = deliveries_.at(delivery_ids_.at(delivery.id));
  row = std::move(delivery);
  index(row);
}

void Tables::erase_delivery(const DeliveryId& id) {
  const auto key = delivery_ids_.at(id);
  delivery_ids_.erase(id);
  jobs_.erase(id);
  open_.erase(key);
  deliveries_.erase(key);
}

bool Tables::is_taken(const Delivery& delivery, const JobColumns& job) const {
  for (const auto& [id, other] : jobs_) {
    if (other.policy.job != job.policy.job) continue;
    const auto& row = *find_delivery(id);
    if (row.event_seq == delivery.event_seq && other.policy.queue == job.policy.queue &&
        row.generation == delivery.generation) {
      return true;
    }
    const bool holds_key =
        row.status == DeliveryStatus::pending || row.status == DeliveryStatus::dispatched;
    if (holds_key && !job.policy.unique_key.empty() &&
        other.policy.unique_key == job.policy.unique_key) {
      return true;
    }
  }
  return false;
}

bool Tables::insert_job(Delivery delivery, JobColumns job) {
  const auto id = delivery.id;
  if (is_taken(delivery, job) || !insert_delivery(std::move(delivery))) return false;
  jobs_.emplace(id, std::move(job));
  ring();
  return true;
}

const JobColumns* Tables::find_job(const DeliveryId& id) const {
  const auto job = jobs_.find(id);
  return job == jobs_.end() ? nullptr : &job->second;
}

void Tables::write_job(Delivery delivery, JobColumns job) {
  write_job_quietly(std::move(delivery), std::move(job));
  ring();
}

void Tables::write_job_quietly(Delivery delivery, JobColumns job) {
  jobs_.at(delivery.id) = std::move(job);
  write_delivery(std::move(delivery));
}

std::vector<const Delivery*> Tables::open_deliveries() const {
  std::vector<const Delivery*> open;
  open.reserve(open_.size());
  for (const auto& key : open_)
    open.push_back(&deliveries_.at(key));
  return open;
}

void Tables::index(const Delivery& delivery) {
  const auto key = key_of(delivery);
  const bool ended = delivery.status == DeliveryStatus::completed ||
                     delivery.status == DeliveryStatus::discarded ||
                     delivery.status == DeliveryStatus::cancelled;
  if (ended || is_superseded(key)) {
    open_.erase(key);
  } else {
    open_.insert(key);
  }
}

MemoryDatabase::MemoryDatabase(std::int32_t partitions, const Clock& clock, Random& random)
    : tables(partitions), ids(clock, random), clock_(clock) {
  POSTRIDER_ASSERT(partitions >= 1);
}

MemoryDatabase::MemoryDatabase(std::int32_t partitions, const Clock& clock,
                               std::unique_ptr<Random> random)
    : tables(partitions), ids(clock, *random), own_random_(std::move(random)), clock_(clock) {
  POSTRIDER_ASSERT(partitions >= 1);
}

std::shared_ptr<MemoryDatabase> make_memory_database(std::int32_t partitions) {
  return std::make_shared<MemoryDatabase>(partitions, system_clock(), system_random());
}

std::shared_ptr<MemoryDatabase> make_memory_database(std::int32_t partitions, const Clock& clock,
                                                     Random& random) {
  return std::make_shared<MemoryDatabase>(partitions, clock, random);
}

Seq plant_malformed_event(MemoryDatabase& database, std::string why) {
  const MutexLock lock(database.mutex);
  Event event;
  event.id = EventId(database.ids.next());
  event.type = "malformed";
  event.content_type = "application/json";
  event.created_at = database.time_of(std::nullopt);
  return database.tables.insert_event(std::move(event), std::move(why));
}

std::vector<AuditEntry> audit_of(const MemoryDatabase& database) {
  const MutexLock lock(database.mutex);
  return database.tables.audit();
}

}  // namespace postrider::testing
