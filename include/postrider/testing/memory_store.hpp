#pragma once
/// \file
/// A store in memory, for tests of applications and as the base of the simulator. It passes the
/// same conformance suite as the real ones; only durability is missing.
///
/// Time: a call that carries `now` reads no other clock. `add` has no `now` and takes the clock
/// that the database was made with, as do calls that leave `now` empty.

#include <memory>
#include <string>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/job_operations.hpp>
#include <postrider/job_store.hpp>
#include <postrider/operations.hpp>
#include <postrider/purger.hpp>
#include <postrider/schedule_store.hpp>
#include <postrider/store.hpp>

namespace postrider::testing {

/// The tables. Shared by any number of stores, as a database is. Thread safety: any thread.
class MemoryDatabase;

/// On the machine's clock, with random ids.
[[nodiscard]] std::shared_ptr<MemoryDatabase> make_memory_database(std::int32_t partitions = 1);
/// The same calls give the same rows. Ownership: clock and random are borrowed and must outlive it.
[[nodiscard]] std::shared_ptr<MemoryDatabase> make_memory_database(std::int32_t partitions,
                                                                   const Clock& clock,
                                                                   Random& random);

[[nodiscard]] std::unique_ptr<Store> make_memory_store(std::shared_ptr<MemoryDatabase> database);
[[nodiscard]] std::unique_ptr<JobStore> make_memory_job_store(
    std::shared_ptr<MemoryDatabase> database);
[[nodiscard]] std::unique_ptr<Operations> make_memory_operations(
    std::shared_ptr<MemoryDatabase> database);
[[nodiscard]] std::unique_ptr<JobOperations> make_memory_job_operations(
    std::shared_ptr<MemoryDatabase> database);
[[nodiscard]] std::unique_ptr<ScheduleStore> make_memory_schedule_store(
    std::shared_ptr<MemoryDatabase> database);

/// Has idempotency keys and no receipts: there is no inbox in memory.
[[nodiscard]] std::unique_ptr<Purger> make_memory_purger(std::shared_ptr<MemoryDatabase> database);

/// Writes an event as a careless hand could have: it is claimed as malformed, for the reason `why`.
Seq plant_malformed_event(MemoryDatabase& database, std::string why);

/// One change by a person.
struct AuditEntry {
  Timestamp at;
  std::string action;   ///< "dead_retry", "dead_discard", "route_pause", "route_resume", "purge"
  std::string subject;  ///< a delivery's id, a route's name, a filter, or what was purged
  Operator who;
};

/// All changes by people, oldest first.
[[nodiscard]] std::vector<AuditEntry> audit_of(const MemoryDatabase& database);

}  // namespace postrider::testing
