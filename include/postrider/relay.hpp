#pragma once
/// \file
/// The relay: carries events from a store to the destinations of its routes.
///
/// In order per aggregate and route, at least once. The life of one event stands in
/// ARCHITECTURE.md; the decisions are those of src/core, driven here by one coordinating thread and
/// one thread per route; schedules have a thread of their own.
///
/// Ownership: a relay owns its stores, publishers and purger; clock, random source and observer are
///   borrowed and must outlive it.
/// Thread safety: `request_stop` from any thread; everything else from one thread at a time.

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/job_store.hpp>
#include <postrider/observer.hpp>
#include <postrider/publisher.hpp>
#include <postrider/purger.hpp>
#include <postrider/relay_values.hpp>
#include <postrider/result.hpp>
#include <postrider/route.hpp>
#include <postrider/schedule.hpp>
#include <postrider/schedule_store.hpp>
#include <postrider/store.hpp>

namespace postrider {

/// A route and where it leads.
struct RouteBinding {
  Route route;
  /// Of a job route: the broker that its tasks are handed to; null when workers take them from the
  /// database.
  std::unique_ptr<Publisher> publisher;
};

/// The schedules that a relay runs, beside any other relay with the same ones. Without a store, or
/// with none of them, nothing is run.
struct RelaySchedules {
  std::unique_ptr<ScheduleStore> store = nullptr;
  std::vector<Schedule> schedules = {};
};

/// How a drain ended.
struct DrainReport {
  PassReport total;  ///< `sent` and `errors` of all passes, bounded as above
  std::size_t passes = 0;
  bool drained = false;  ///< nothing is due any more; false when `max_passes` or a stop ended it
};

/// How a loop ended.
struct LoopReport {
  bool clean = true;  ///< false when `drain_timeout` passed with messages still in flight
  std::size_t left_in_flight = 0;
};

class Relay {
 public:
  /// Without a purger nothing is ever deleted. With `jobs` it also ends attempts of jobs that
  /// nobody else will end, and hands tasks to brokers: on threads of their own, in a loop beside
  /// the rest.
  ///
  /// What is due by a schedule becomes an event before a pass, and in a loop when its slot comes.
  /// Nothing that fails there ends the relay.
  ///
  /// Requires: `jobs`, when a job route has a publisher; `validate` finds nothing in `options` nor
  /// in any route or schedule; no two routes `conflict`, and no two schedules have one name.
  Relay(std::unique_ptr<Store> store, std::vector<RouteBinding> routes, RelayOptions options,
        const Clock& clock, Random& random, Observer& observer,
        std::unique_ptr<Purger> purger = nullptr, std::unique_ptr<JobStore> jobs = nullptr,
        RelaySchedules schedules = {});
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// One pass: renews leases, takes up due deliveries, claims one batch, routes, attempts, settles.
  ///
  /// Everything that the pass read is settled, stored, or left in the table for the next pass when
  /// it returns; a relay remembers only its leases and which routes are paused.
  /// Blocking: until every attempt of the pass has its outcome; an attempt is bounded by its
  ///   route's timeout.
  /// Errors: of the store only. What destinations answered is in the report.
  Result<PassReport> run_once();

  /// Passes until nothing is due, at most `max_passes`, with `sleep` between two that sent nothing.
  Result<DrainReport> drain(std::optional<std::size_t> max_passes);

  /// Runs until `request_stop`: reading ahead, publishing and settling overlap, with the same
  /// visible result as passes. Survives outages of the store and of destinations.
  ///
  /// While it owns partition 0 and no backlog waits, it deletes what is older than its retention,
  /// on a thread and a connection of their own.
  ///
  /// Errors: only what a person has to mend (`Disposition::stop`): schema, credentials, rights.
  Result<LoopReport> run();

  /// Ends `drain` after the current pass and `run` once what is in flight is settled. Idempotent;
  /// before a start it makes that start return at once.
  void request_stop() noexcept;

  /// Gives the leases back and closes the publishers. Idempotent; the destructor does it too.
  ///
  /// Blocking: also until a purge that is running has ended, at most `store_timeout`.
  Result<void> close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace postrider
