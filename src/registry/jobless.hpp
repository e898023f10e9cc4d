#pragma once
/// \file
/// The job side of a store that has none yet: it has no jobs or schedules and takes none.

#include <memory>
#include <string>

#include <postrider/job_operations.hpp>
#include <postrider/job_store.hpp>
#include <postrider/schedule_store.hpp>

namespace postrider::registry {

/// Every call but `wake` is `unsupported`. `store` is the name for messages: "MariaDB".
[[nodiscard]] std::unique_ptr<JobStore> make_jobless_store(std::string store);

/// Lists are empty; everything that would change a job or a queue is `unsupported`.
[[nodiscard]] std::unique_ptr<JobOperations> make_jobless_operations(std::string store);

/// Knows no schedule; everything that would change one is `unsupported`.
[[nodiscard]] std::unique_ptr<ScheduleStore> make_jobless_schedules(std::string store);

}  // namespace postrider::registry
