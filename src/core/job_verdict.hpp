#pragma once
/// \file
/// What becomes of a job after an attempt. The whole policy of jobs is this one function.

#include <optional>

#include <postrider/job.hpp>
#include <postrider/job_store_values.hpp>

namespace postrider::core {

/// Judges how the attempt `dispatch` of `job` ended, which `worker` ran if that is known.
///
/// - done completes; fail fails; cancelled, and any end but done after a cancel request, cancels.
/// - retry, timed out and a refused hand-over use an attempt: pending after the next delay (or the
///   handler's own) while one is left, else failed.
/// - snooze uses none, at most `JobOutcome::most_snoozes` times.
/// - interrupted uses none and is due at once.
/// - a death follows `on_worker_death`: failed, or an attempt is used while `max_deaths` lasts.
///   Codes: worker_died with the signal in the detail, oom_killed, exited_without_result.
///
/// What fails, or uses an attempt, joins the history of the job. The events of its hooks are in the
/// update.
[[nodiscard]] JobUpdate judge_job(const Job& job, const DispatchId& dispatch, const AttemptEnd& end,
                                  const std::optional<WorkerId>& worker = std::nullopt);

/// The same end of a job that a person wants cancelled, which the judge could not know.
[[nodiscard]] JobUpdate cancelled_instead(JobUpdate update);

}  // namespace postrider::core
