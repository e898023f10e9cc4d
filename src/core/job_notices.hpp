#pragma once
/// \file
/// What is told of jobs: ids, words and numbers.

#include <postrider/job.hpp>
#include <postrider/job_store_values.hpp>
#include <postrider/notice.hpp>

namespace postrider::core {

/// A notice with the names and ids of the job; its kind is still to be set.
[[nodiscard]] Notice notice_about(const Job& job, const DispatchId& dispatch);
/// The same with the type of its event.
[[nodiscard]] Notice notice_about(const Task& task);

/// What a recorded end came to, by the status that it left: completed, cancelled, failed, or
/// pending again as a retry. Who knows more of it sets another kind.
[[nodiscard]] Notice notice_of_end(Notice about, const JobUpdate& update);

}  // namespace postrider::core
