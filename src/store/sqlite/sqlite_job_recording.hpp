#pragma once
/// \file
/// What an attempt says while it runs and how it ended: each applied only while it is current.

#include <postrider/job_store.hpp>

#include "store/sqlite/sqlite_connection.hpp"

namespace postrider::store::sqlite {

/// With the failure and the events that it brings along, if it is applied. The caller holds a
/// writing transaction.
[[nodiscard]] Result<RecordAnswer> record_end(SqliteConnection& connection, const JobUpdate& update,
                                              IdGenerator& ids, Timestamp now);

/// Whether the update writes anything; if not, a read transaction is enough for `touch_attempt`.
[[nodiscard]] bool writes(const AttemptUpdate& update) noexcept;

[[nodiscard]] Result<AttemptState> touch_attempt(SqliteConnection& connection,
                                                 const AttemptUpdate& update, Timestamp now);

/// Attempts that nobody will end, once `LostRequest::dead_after` was applied.
[[nodiscard]] Result<LostBatch> find_lost(SqliteConnection& connection, std::size_t limit,
                                          Timestamp now);

}  // namespace postrider::store::sqlite
