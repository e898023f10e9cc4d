#pragma once
/// \file
/// Beginning attempts: for workers that take them, and for brokers that are handed them.
///
/// The caller holds a writing transaction, so the rows that are read are those that are written.

#include <postrider/job_store.hpp>

#include "store/sqlite/sqlite_connection.hpp"

namespace postrider::store::sqlite {

/// Requires: the worker lives.
/// Cost: one index entry per row that is returned and per row that waits behind a serial key before
///   it, one probe per priority in use and per serial key met.
[[nodiscard]] Result<TaskBatch> take_jobs(SqliteConnection& connection, const TakeRequest& request,
                                          IdGenerator& ids, Timestamp now);

[[nodiscard]] Result<TaskBatch> hand_out_jobs(SqliteConnection& connection,
                                              const HandOutRequest& request, IdGenerator& ids,
                                              Timestamp now);

/// Requires: the worker lives.
[[nodiscard]] Result<StartAnswer> start_job(SqliteConnection& connection,
                                            const StartRequest& request, Timestamp now);

}  // namespace postrider::store::sqlite
