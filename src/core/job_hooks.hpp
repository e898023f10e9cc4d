#pragma once
/// \file
/// The events by which a job tells what became of it.

#include <vector>

#include <postrider/job.hpp>
#include <postrider/job_store_values.hpp>

namespace postrider::core {

/// What is to be written with `update`, which `end` has brought about: a death first, then what
/// became of the job. Nothing of a job that is cancelled, of one that waits without a failure
/// (snoozed, given back), and at `JobHooks::most_depth`.
///
/// Each stands in the aggregate of the job's own event, so it comes behind it on ordered routes.
[[nodiscard]] std::vector<NewEvent> hook_events(const Job& job, const JobUpdate& update,
                                                const AttemptEnd& end);

}  // namespace postrider::core
