#pragma once
#include <postrider/job.hpp>

#include "runner/common/process_supervisor.hpp"

namespace postrider::runner {

/// What an exit code says; after sysexits, 75 is EX_TEMPFAIL.
inline constexpr int exit_done = 0;
inline constexpr int exit_retry = 75;

/// Code of an attempt whose command could not be started.
inline constexpr std::string_view cannot_start_code = "cannot_start";
/// Code of an attempt whose result line breaks its rules.
inline constexpr std::string_view bad_result_code = "bad_result";

/// What the end of a command means.
///
/// - it could not be started: retry, cannot_start.
/// - a signal: the worker's death, except one that we sent: interrupted.
/// - a result line decides, except that done needs exit code 0.
/// - else 0 is done, 75 retry, others fail with the code exit_N.
[[nodiscard]] AttemptEnd judge_exec(const ProcessEnd& end);

}  // namespace postrider::runner
