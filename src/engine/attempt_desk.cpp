#include "engine/attempt_desk.hpp"

#include <utility>

namespace postrider::engine {

StoreDesk::StoreDesk(std::unique_ptr<JobStore> store, milliseconds patience, const Clock& clock,
                     std::function<void()> extended)
    : store_(std::move(store)),
      patience_(patience),
      clock_(clock),
      extended_(std::move(extended)) {}

Result<AttemptState> StoreDesk::touch(AttemptUpdate update) {
  const auto asked_at = clock_.steady();
  update.now = clock_.database_override();
  auto state = ask(update, Deadline::after(patience_));
  if (state && state->current && update.extend) {
    {
      const MutexLock lock(mutex_);
      extensions_.insert_or_assign(
          update.dispatch_id,
          core::worker_input::Extended{update.dispatch_id, state->until_timeout, asked_at});
    }
    extended_();
  }
  return state;
}

// Whoever holds the connection has an earlier deadline, so that nobody waits much longer than his
// own.
Result<AttemptState> StoreDesk::ask(const AttemptUpdate& update, Deadline deadline) {
  const MutexLock lock(connection_);
  if (deadline.passed()) {
    return Error{ErrorCode::timeout, Disposition::retry,
                 "other attempts kept the connection busy. Ask again, and less often.", "worker",
                 ""};
  }
  return store_->touch(update, deadline);
}

std::vector<core::worker_input::Extended> StoreDesk::take_extensions() {
  const MutexLock lock(mutex_);
  std::vector<core::worker_input::Extended> taken;
  for (auto& [dispatch, extension] : std::exchange(extensions_, {}))
    taken.push_back(extension);
  return taken;
}

}  // namespace postrider::engine
