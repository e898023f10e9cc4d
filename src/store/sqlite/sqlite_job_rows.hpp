#pragma once
/// \file
/// Rows of jobs as the values of the seam, and their events.

#include <map>
#include <optional>
#include <string>

#include <postrider/job_store_values.hpp>

#include "store/common/event_row.hpp"
#include "store/sqlite/sqlite_connection.hpp"

namespace postrider::store::sqlite {

/// A job while an attempt of it runs.
struct DispatchedJob {
  Job job;
  JobHooks hooks;  ///< in the job itself once its event is known
  DispatchId dispatch_id;
  Timestamp delivery_timeout_at;
  std::optional<WorkerId> worker;
  std::string checkpoint;
  std::string malformed;  ///< why the row cannot be trusted; empty when it is sound
};

/// From a row of the statements in jobs.sql that say so.
[[nodiscard]] DispatchedJob read_dispatched_job(const SqliteQuery& row);

/// Puts events to the jobs of one batch; several may be of one event.
class TaskReader {
 public:
  explicit TaskReader(SqliteConnection& connection, Timestamp now = {})
      : connection_(connection), now_(now) {}

  Result<Task> read(DispatchedJob dispatched);
  /// Gives a job its hooks, with what they take from its event.
  Result<void> set_hooks(DispatchedJob& dispatched);

 private:
  Result<ReadEvent> event_of(Seq seq);

  SqliteConnection& connection_;
  Timestamp now_;
  std::map<Seq, ReadEvent> events_;
};

}  // namespace postrider::store::sqlite
