#pragma once
/// \file
/// The seam of people: what `postrider status`, `events`, `deliveries`, `dead` and `route` ask of a
/// database.
///
/// Reading never locks and never writes. Each change is one transaction that is written to
/// `postrider_audit` and bumps the generation of the partitions it touches, so that a running relay
/// reloads what it believed.
///
/// Thread safety: one thread at a time per object.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/delivery.hpp>
#include <postrider/ids.hpp>
#include <postrider/listing.hpp>
#include <postrider/result.hpp>
#include <postrider/store_values.hpp>

namespace postrider {

struct EventCounts {
  std::int64_t total = 0;
  std::int64_t unrouted = 0;
  std::optional<milliseconds> oldest_unrouted_age;
};

struct DeliveryCounts {
  std::string route;
  std::int64_t held = 0;
  std::int64_t due = 0;
  std::int64_t delayed = 0;
  std::int64_t dispatched = 0;
  std::int64_t overdue = 0;
  std::int64_t completed = 0;
  std::int64_t failed = 0;
  std::int64_t discarded = 0;
  std::int64_t cancelled = 0;
  std::int64_t retries = 0;
  std::optional<milliseconds> oldest_due_age;
  std::optional<milliseconds> oldest_dispatched_age;
};

struct PartitionState {
  Partition partition;
  std::string owner;
  std::optional<milliseconds> remaining;
  std::optional<milliseconds> lapsed = {};  ///< since when a lease is over that nobody took over
  Suspicion suspicion = {};
};

struct Status {
  EventCounts events;
  std::vector<DeliveryCounts> routes;  ///< by name; held events stand under the empty name
  std::vector<PartitionState> partitions;
  std::vector<std::string> paused_routes;
};

/// Where a dead letter stands in their order.
struct DeadPlace {
  Seq event_seq;
  std::string route;
};

/// Which dead letters a command means. All fields that are set must hold.
struct DeadFilter {
  std::vector<DeliveryId> ids;
  std::optional<std::string> route;
  std::optional<std::string> event_type;
  std::optional<std::string> failure_code;
  std::optional<bool> ambiguous;
  std::size_t limit = 1000;  ///< 1 to 100,000
  /// Only those behind this one, in the order of `dead_letters`: for going on after a limit.
  std::optional<DeadPlace> after;
};

struct DeadLetter {
  Delivery delivery;
  std::string event_type;
  std::string aggregate_key;
};

/// Who changes something and why, for the audit.
struct Operator {
  std::string name;
  std::string reason;
  /// What the command selects by, when it is many: "route=orders code=timeout". Each transaction of
  /// such a command then leaves one more line, with this and the number of rows.
  std::string filter = {};
};

class Operations {
 public:
  virtual ~Operations() = default;

  virtual Result<Status> status(std::optional<Timestamp> now, Deadline deadline) = 0;
  virtual Result<EventPage> events(const EventFilter& filter, std::optional<Timestamp> now,
                                   Deadline deadline) = 0;
  /// Nothing when there is no such event.
  virtual Result<std::optional<EventDetail>> event(const EventId& id, bool with_payload,
                                                   Deadline deadline) = 0;
  virtual Result<DeliveryPage> deliveries(const DeliveryFilter& filter,
                                          std::optional<Timestamp> now, Deadline deadline) = 0;

  virtual Result<std::vector<DeadLetter>> dead_letters(const DeadFilter& filter,
                                                       Deadline deadline) = 0;
  /// Makes the next generation of each, due at once; returns the new rows' ids. A job whose unique
  /// key an open job has stays as it is; retry it when that one has ended.
  virtual Result<std::vector<DeliveryId>> dead_retry(const DeadFilter& filter, const Operator& who,
                                                     std::optional<Timestamp> now,
                                                     Deadline deadline) = 0;
  /// Gives them up: their aggregates go on. Returns the ids.
  virtual Result<std::vector<DeliveryId>> dead_discard(const DeadFilter& filter,
                                                       const Operator& who,
                                                       std::optional<Timestamp> now,
                                                       Deadline deadline) = 0;
  /// Idempotent; the answer tells whether it changed anything.
  virtual Result<bool> route_pause(const std::string& route, const Operator& who,
                                   std::optional<Timestamp> now, Deadline deadline) = 0;
  virtual Result<bool> route_resume(const std::string& route, const Operator& who,
                                    std::optional<Timestamp> now, Deadline deadline) = 0;
};

}  // namespace postrider
