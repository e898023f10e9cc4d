#pragma once
/// \file
/// Writing events into the tables in memory: what adds them and what enqueues jobs with them.

#include <span>
#include <vector>

#include <postrider/event.hpp>
#include <postrider/result.hpp>

#include "store/memory/memory_database.hpp"

namespace postrider::testing {

/// Whether these may be written together. Errors: as of `insert_events`.
Result<void> check_free(const Tables& tables, std::span<const NewEvent> events);

/// All of them or none, in their order. Errors: `already_exists` for an id or a version.
Result<std::vector<EventId>> insert_events(MemoryDatabase& database,
                                           std::span<const NewEvent> events)
    POSTRIDER_REQUIRES(database.mutex);

}  // namespace postrider::testing
