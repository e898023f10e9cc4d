#pragma once
/// \file
/// What every SQL outbox needs to write the events of an application.

#include <memory>

#include <postrider/clock.hpp>
#include <postrider/event.hpp>
#include <postrider/ids.hpp>

#include "base/mutex.hpp"

namespace postrider::store {

/// Thread safety: any thread.
class OutboxIds {
 public:
  OutboxIds();

  /// The event's own id, or a new one.
  [[nodiscard]] EventId id_of(const NewEvent& event);

 private:
  Mutex mutex_;
  std::unique_ptr<Random> random_;
  IdGenerator ids_ POSTRIDER_GUARDED_BY(mutex_);
};

/// The answer when an insert that ought to write one row wrote none: a trigger of the application
/// was in the way.
[[nodiscard]] Error nothing_written(std::string_view origin);
/// The answer when a key was purged between claiming and reading it: a repetition of the
/// transaction finds another state.
[[nodiscard]] Error key_vanished(std::string_view origin);
/// The answer to a key that was used for other content.
[[nodiscard]] Error key_was_reused(std::string_view origin);

}  // namespace postrider::store
