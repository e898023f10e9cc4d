#pragma once
/// \file
/// The tables of the memory store. Ordered containers only, so that equal calls give equal answers.

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <postrider/content_hash.hpp>
#include <postrider/job_store_values.hpp>
#include <postrider/schedule_store_values.hpp>
#include <postrider/testing/memory_store.hpp>

#include "base/mutex.hpp"

namespace postrider::testing {

struct EventRow {
  std::shared_ptr<const Event> event;
  Partition partition;
  std::optional<Timestamp> routed_at;
  std::string malformed;
};

/// Unique per delivery row, and the order in which rows are read.
struct DeliveryKey {
  Seq event_seq;
  std::string route;
  int generation = 1;
  friend auto operator<=>(const DeliveryKey&, const DeliveryKey&) = default;
};

/// Who took an idempotency key.
struct KeyRow {
  EventId event_id;
  ContentHash content_hash;
  Timestamp created_at;
};

/// What the row of a job has beside a `Delivery`.
struct JobColumns {
  JobPolicy policy;  ///< its keys are filled in; empty ones are no keys
  JobTransport transport = JobTransport::database;
  int deaths = 0;  ///< with the dispatch that runs
  int snoozes = 0;
  int interruptions = 0;
  std::optional<WorkerId> worker;
  std::optional<int> serial_slot;
  std::optional<Timestamp> cancel_requested_at;
  std::optional<int> percent;
  std::string note;
  std::string checkpoint;
  std::vector<JobFailure> failures;   ///< the latest ones, oldest first
  std::optional<std::string> result;  ///< of the dispatch that the delivery names
};

struct WorkerRow {
  WorkerInfo info;
  Timestamp started_at;
  Timestamp last_seen_at;
};

/// What was said of a queue; others run without limits.
struct QueueRow {
  std::optional<Timestamp> paused_at;
  std::string paused_by;
  std::string reason;
  std::optional<int> rate_limit;
  milliseconds rate_period{0};
  double tokens = 0;
  std::optional<Timestamp> refilled_at;  ///< empty: the bucket is full
};

/// A schedule with its slots that have run.
struct ScheduleRow {
  ScheduleState state;
  std::set<Timestamp> slots;
};

struct PartitionRow {
  std::string owner;  ///< empty: free
  FencingToken token;
  Timestamp leased_until;
  ReadMark mark;
  std::int64_t generation = 0;
  Suspicion suspicion;
};

/// Requires: every function is called by one thread at a time; `MemoryDatabase` sees to that.
class Tables {
 public:
  explicit Tables(std::int32_t partitions) : partitions_(static_cast<std::size_t>(partitions)) {}

  std::map<Seq, EventRow>& events() { return events_; }
  const std::map<Seq, EventRow>& events() const { return events_; }
  /// By scope and key.
  std::map<std::pair<std::string, std::string>, KeyRow>& keys() { return keys_; }
  std::vector<PartitionRow>& partitions() { return partitions_; }
  const std::vector<PartitionRow>& partitions() const { return partitions_; }
  std::set<std::string>& paused_routes() { return paused_routes_; }
  const std::set<std::string>& paused_routes() const { return paused_routes_; }
  std::vector<AuditEntry>& audit() { return audit_; }
  const std::vector<AuditEntry>& audit() const { return audit_; }
  const std::map<DeliveryKey, Delivery>& deliveries() const { return deliveries_; }

  PartitionRow& partition(Partition partition) {
    return partitions_.at(static_cast<std::size_t>(partition.value()));
  }
  const EventRow& event_of(const Delivery& delivery) const {
    return events_.at(delivery.event_seq);
  }

  /// Gives the event its seq and partition. The caller has made sure that nothing of it is taken.
  Seq insert_event(Event event, std::string malformed);
  [[nodiscard]] bool has_event_id(const EventId& id) const { return event_ids_.contains(id); }
  [[nodiscard]] bool has_version(const Aggregate& aggregate, std::int64_t version) const {
    return versions_.contains({aggregate, version});
  }
  /// With all its deliveries.
  void erase_event(Seq seq);

  /// False when the id, or the row's place (event, route, generation), is taken. Requires: the
  /// event is there.
  bool insert_delivery(Delivery delivery);
  [[nodiscard]] const Delivery* find_delivery(const DeliveryId& id) const;
  /// Replaces the row with the same id.
  void write_delivery(Delivery delivery);
  void erase_delivery(const DeliveryId& id);

  /// `insert_delivery` for a job. False also when the event has made this job in this queue, or
  /// when an open one has its unique key.
  bool insert_job(Delivery delivery, JobColumns job);
  /// Null for other deliveries.
  [[nodiscard]] const JobColumns* find_job(const DeliveryId& id) const;
  /// Replaces both halves of the row with this id.
  void write_job(Delivery delivery, JobColumns job);
  /// The same for a change by which nothing can become due.
  void write_job_quietly(Delivery delivery, JobColumns job);
  /// By delivery.
  const std::map<DeliveryId, JobColumns>& jobs() const { return jobs_; }
  std::map<WorkerId, WorkerRow>& workers() { return workers_; }
  const std::map<WorkerId, WorkerRow>& workers() const { return workers_; }
  std::map<std::string, QueueRow>& queues() { return queues_; }
  const std::map<std::string, QueueRow>& queues() const { return queues_; }
  std::map<std::string, ScheduleRow>& schedules() { return schedules_; }

  /// Tells those that wait for jobs that something may have become due. Changes of a job's row do
  /// that by themselves.
  void ring() {
    ++rings_;
    rung_.notify_all();
  }
  /// How often that was.
  [[nodiscard]] std::uint64_t rings() const { return rings_; }
  Condition& rung() { return rung_; }

  /// Rows that are not at their end, and dead letters: held, pending, dispatched, and failed ones
  /// without a later generation. In order of reading.
  [[nodiscard]] std::vector<const Delivery*> open_deliveries() const;
  [[nodiscard]] bool is_open(const DeliveryKey& key) const { return open_.contains(key); }
  [[nodiscard]] bool is_superseded(const DeliveryKey& key) const {
    return deliveries_.contains({key.event_seq, key.route, key.generation + 1});
  }
  [[nodiscard]] bool is_held(Seq seq) const { return open_.contains({seq, "", 1}); }

 private:
  static DeliveryKey key_of(const Delivery& delivery) {
    return {delivery.event_seq, delivery.route, delivery.generation};
  }
  void index(const Delivery& delivery);
  [[nodiscard]] bool is_taken(const Delivery& delivery, const JobColumns& job) const;

  std::int64_t last_seq_ = 0;
  std::map<Seq, EventRow> events_;
  std::set<EventId> event_ids_;
  std::map<std::pair<std::string, std::string>, KeyRow> keys_;
  std::set<std::pair<Aggregate, std::int64_t>> versions_;
  std::map<DeliveryKey, Delivery> deliveries_;
  std::map<DeliveryId, DeliveryKey> delivery_ids_;
  std::set<DeliveryKey> open_;
  std::vector<PartitionRow> partitions_;
  std::set<std::string> paused_routes_;
  std::vector<AuditEntry> audit_;
  std::map<DeliveryId, JobColumns> jobs_;
  std::map<WorkerId, WorkerRow> workers_;
  std::map<std::string, QueueRow> queues_;
  std::map<std::string, ScheduleRow> schedules_;
  std::uint64_t rings_ = 0;
  Condition rung_;
};

class MemoryDatabase {
 public:
  MemoryDatabase(std::int32_t partitions, const Clock& clock, Random& random);
  MemoryDatabase(std::int32_t partitions, const Clock& clock, std::unique_ptr<Random> random);

  mutable Mutex mutex;
  Tables tables POSTRIDER_GUARDED_BY(mutex);
  IdGenerator ids POSTRIDER_GUARDED_BY(mutex);

  [[nodiscard]] Timestamp time_of(const std::optional<Timestamp>& now) const {
    return now ? *now : clock_.wall();
  }

 private:
  std::unique_ptr<Random> own_random_;
  const Clock& clock_;
};

/// Tells whether `delivery`, an open one, holds back what queues behind it; see `Store`.
[[nodiscard]] inline bool blocks(const Delivery& delivery) {
  return delivery.status == DeliveryStatus::pending ||
         delivery.status == DeliveryStatus::dispatched ||
         (delivery.status == DeliveryStatus::failed && delivery.on_failed == OnFailed::halt);
}

/// Tells whether `delivery` was handed over and its deadline has passed without a result.
[[nodiscard]] inline bool is_overdue(const Delivery& delivery, Timestamp now) {
  return delivery.status == DeliveryStatus::dispatched && delivery.delivery_timeout_at <= now;
}

}  // namespace postrider::testing
