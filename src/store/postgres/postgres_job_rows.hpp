#pragma once
/// \file
/// Rows of jobs as the values of their seam.
///
/// Thread safety: functions without state.

#include <string>
#include <string_view>

#include <postrider/job_store_values.hpp>

#include "store/postgres/postgres_values.hpp"

namespace postrider::store::postgres {

/// Columns of a job, from id to dispatch_id, as all statements that return one give them.
inline constexpr int job_columns = 18;

struct JobColumns {
  Job job;
  JobHooks hooks;  ///< in the job itself once its event is known
  DispatchId dispatch_id;
  std::string malformed;  ///< why the row cannot be trusted; empty when it is sound
};

/// Reads the job whose id stands in column 0. It is dispatched, so its row counts one death more.
[[nodiscard]] JobColumns read_job_columns(const Rows& rows, int row);

/// Gives a job that was read its hooks; `event` needs no more than what they take from it.
void set_hooks(JobColumns& columns, const Event& event);

/// Reads a job with the time, its deadline, its checkpoint and its event.
[[nodiscard]] Task read_task(const Rows& rows, int row);

/// What a column of text takes: each NUL, and each byte that is not UTF-8, becomes '?'. Texts of
/// handlers come as they are, and one must not keep the ends of others from being recorded.
[[nodiscard]] std::string storable_text(std::string_view text);

}  // namespace postrider::store::postgres
