#pragma once
/// \file
/// The desk of attempts that run in this process: their questions, on a connection of its own.

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include <postrider/attempt.hpp>
#include <postrider/clock.hpp>
#include <postrider/job_store.hpp>

#include "base/mutex.hpp"
#include "core/worker_steps.hpp"

namespace postrider::engine {

class StoreDesk final : public AttemptDesk {
 public:
  /// `extended` wakes the coordinator. Ownership: borrows the clock.
  StoreDesk(std::unique_ptr<JobStore> store, milliseconds patience, const Clock& clock,
            std::function<void()> extended);

  [[nodiscard]] Result<AttemptState> touch(AttemptUpdate update) override;

  /// Deadlines that were moved since the last call, the latest of each attempt.
  [[nodiscard]] std::vector<core::worker_input::Extended> take_extensions();

 private:
  [[nodiscard]] Result<AttemptState> ask(const AttemptUpdate& update, Deadline deadline);

  const std::unique_ptr<JobStore> store_;
  const milliseconds patience_;
  const Clock& clock_;
  const std::function<void()> extended_;
  Mutex connection_;  // held while the database works: attempts queue up for the one connection
  Mutex mutex_;
  std::map<DispatchId, core::worker_input::Extended> extensions_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider::engine
