#pragma once
/// \file
/// What a relay and a store say to each other: the values of the seam in store.hpp.
///
/// Plain data without behaviour, so that decisions can be made and tested without a database.
/// `now` is the time to judge by; empty (production) means the database's own clock.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/delivery.hpp>
#include <postrider/event.hpp>
#include <postrider/ids.hpp>
#include <postrider/job.hpp>

namespace postrider {

/// How far a table has been read: everything that a statement needs to return each row once,
/// including rows whose numbers were handed out early and whose transactions commit late.
///
/// Opaque to all but the store that made it; a default-constructed mark stands before every row.
/// Stored on partition rows and valid across restarts. READING rules live in each store.
class ReadMark {
 public:
  ReadMark() = default;
  explicit ReadMark(std::string text) : text_(std::move(text)) {}
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  friend bool operator==(const ReadMark&, const ReadMark&) = default;

 private:
  std::string text_;
};

/// Ownership of one partition by one relay, until it is released, runs out or is taken over.
struct Lease {
  Partition partition;
  FencingToken token;
  friend bool operator==(const Lease&, const Lease&) = default;
};

/// What is known of owners of a partition that died. A diagram stands in ARCHITECTURE.md under
/// "Crash suspicion".
struct Suspicion {
  /// Takeovers from owners that had released nothing, since the last round that was settled whole.
  int crashes = 0;
  /// The event that is being sent, alone, while crashes are suspected; it stays when the owner
  /// dies.
  std::optional<Seq> probe_seq = std::nullopt;
  friend bool operator==(const Suspicion&, const Suspicion&) = default;
};

struct PartitionSuspicion {
  Partition partition;
  Suspicion suspicion;
};

struct LeaseRequest {
  std::string owner;           ///< identity of this relay process: fresh for each start
  milliseconds lease_time{0};  ///< judged by the database's clock
  std::size_t at_most = 0;     ///< partitions that this relay wants to own altogether
  std::optional<Timestamp> now;
};

struct GrantedLease {
  Lease lease;
  bool gained = false;          ///< by this call; false when it was renewed
  ReadMark mark;                ///< the partition's stored mark
  std::int64_t generation = 0;  ///< changes when an operator touched deliveries of the partition
  Suspicion suspicion = {};     ///< with this takeover counted
};

struct ForeignLease {
  Partition partition;
  std::string owner;
  milliseconds remaining{0};
};

struct LeaseGrant {
  std::vector<GrantedLease> leases;        ///< all that this owner holds now, by partition
  std::vector<ForeignLease> foreign;       ///< unexpired leases of others, by partition
  std::vector<std::string> paused_routes;  ///< paused by a person or stopped by a dead letter
};

struct ClaimRequest {
  /// What is unread after *any* of these marks is returned; several after a partition was gained.
  std::vector<ReadMark> after;
  std::vector<Partition> partitions;  ///< rows of others are passed over
  std::size_t limit = 0;              ///< events, at least 1
  std::size_t bytes = 0;  ///< payload bytes; the first event is returned whatever it weighs
  std::optional<Timestamp> now;
};

struct ClaimedEvent {
  std::shared_ptr<const Event> event;
  Partition partition;
  std::optional<milliseconds> delay;  ///< until `available_at`, when that lies in the future
  std::string malformed;              ///< why this row can go nowhere; empty when it is sound
};

/// A (route, ordering key) whose head is a row that has to go first.
struct OpenHead {
  std::string route;
  std::string ordering_key;
  friend auto operator<=>(const OpenHead&, const OpenHead&) = default;
  friend bool operator==(const OpenHead&, const OpenHead&) = default;
};

struct ClaimedBatch {
  std::vector<ClaimedEvent> events;  ///< by seq
  ReadMark mark;                     ///< after these events
  bool more = false;                 ///< a limit cut the batch: another claim finds something
  /// Of the events' aggregate keys and the global key: those with a blocking delivery, in the same
  /// snapshot or a later one. Blocking are held-back rows in the sense of `Store`, see there.
  std::vector<OpenHead> open_heads;
};

struct DueRequest {
  std::vector<Partition> partitions;
  std::vector<std::string> routes;  ///< only these; a paused route's rows stay where they are
  std::size_t limit = 0;
  std::size_t bytes = 0;
  std::optional<Timestamp> now;
};

struct DueDelivery {
  Delivery delivery;
  std::shared_ptr<const Event> event;
  Partition partition;
  bool overdue = false;   ///< dispatched, and its deadline has passed without a result
  std::string malformed;  ///< as in `ClaimedEvent`
};

struct DueBatch {
  /// By event seq. Of every (route, ordering key) it holds an unbroken run from the head on.
  std::vector<DueDelivery> deliveries;
  bool more = false;
  /// Until the next delivery of these partitions and routes becomes due; none when there is none.
  std::optional<milliseconds> next_in;
};

struct HeldRequest {
  std::vector<Partition> partitions;
  Seq after;  ///< page on: only events with a greater seq
  std::size_t limit = 0;
  std::optional<Timestamp> now;
};

struct HeldEvent {
  ClaimedEvent claimed;
  DeliveryId delivery;
};

struct HeldBatch {
  std::vector<HeldEvent> events;  ///< by seq
  std::vector<OpenHead> open_heads;
};

/// What a delivery of a job has beside the others.
struct NewJob {
  JobPolicy policy;  ///< with `serial_key` and `unique_key` filled in for this event; may be empty
  JobTransport transport = JobTransport::database;
};

/// A delivery row to be stored by a settle. One whose unique key is taken is not stored, and
/// nothing is said.
struct NewDelivery {
  DeliveryId id;
  Seq event_seq;
  EventId event_id;
  Partition partition;
  std::string route;
  std::optional<std::string> ordering_key;
  DeliveryStatus status = DeliveryStatus::pending;
  int attempts = 0;
  std::vector<milliseconds> retry_delays;
  milliseconds timeout{0};
  OnFailed on_failed = OnFailed::halt;
  std::optional<DispatchId> dispatch_id;
  milliseconds available_in{0};  ///< pending: due so long after the database's now
  std::string failure_code;
  std::string failure_detail;
  bool ambiguous = false;
  std::optional<NewJob> job;  ///< set: a delivery of kind job, without an ordering key
};

/// A change of a delivery row, applied only to the row that the relay believes to see.
struct DeliveryUpdate {
  DeliveryId id;
  Partition partition;
  DeliveryStatus expected_status = DeliveryStatus::pending;
  std::optional<DispatchId> expected_dispatch_id;

  DeliveryStatus status = DeliveryStatus::completed;
  int attempts = 0;
  std::optional<DispatchId> dispatch_id;
  milliseconds available_in{0};
  std::string failure_code;
  std::string failure_detail;
  bool ambiguous = false;
};

struct RoutedEvent {
  Seq seq;
  Partition partition;
};

/// One fenced transaction: all of it happens, or nothing. Its parts are applied in the order of the
/// members, so that an update may concern a delivery of the same request.
struct SettleRequest {
  std::vector<Lease> leases;  ///< of every partition named below, by partition
  std::vector<RoutedEvent> routed;
  std::vector<NewDelivery> deliveries;
  std::vector<DeliveryUpdate> updates;
  std::vector<DeliveryId> released;            ///< held rows whose events are routed by this settle
  std::vector<std::string> stopped_routes;     ///< by a dead letter with `OnFailed::stop`
  std::optional<ReadMark> mark;                ///< to be stored on the partitions of `leases`
  std::vector<PartitionSuspicion> suspicions;  ///< to be stored in place of what is there
  std::optional<Timestamp> now;

  [[nodiscard]] bool empty() const noexcept {
    return routed.empty() && deliveries.empty() && updates.empty() && released.empty() &&
           stopped_routes.empty() && !mark && suspicions.empty();
  }
};

struct SettleResult {
  std::vector<Partition> lost;    ///< not ours any more: nothing of the request was applied
  std::vector<Seq> stale_events;  ///< were routed already; their deliveries were not stored
  std::vector<DeliveryId> stale_deliveries;  ///< were changed by somebody else
};

}  // namespace postrider
