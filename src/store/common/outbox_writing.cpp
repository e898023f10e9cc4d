#include "store/common/outbox_writing.hpp"

namespace postrider::store {

OutboxIds::OutboxIds() : random_(system_random()), ids_(system_clock(), *random_) {}

EventId OutboxIds::id_of(const NewEvent& event) {
  if (event.id) return *event.id;
  const MutexLock lock(mutex_);
  return EventId(ids_.next());
}

Error nothing_written(std::string_view origin) {
  return {
      ErrorCode::internal, Disposition::stop,
      "the insert of an event wrote no row. Look for a trigger or rule on outbox_events that is "
      "not Postrider's, and remove it.",
      std::string(origin), ""};
}

Error key_vanished(std::string_view origin) {
  return {ErrorCode::conflict, Disposition::retry,
          "the idempotency key was deleted while it was looked up. Repeat the whole transaction.",
          std::string(origin), ""};
}

Error key_was_reused(std::string_view origin) {
  return {ErrorCode::key_reused, Disposition::reject,
          "the idempotency key was used before, for an event with other content. Use a new key for "
          "a new request.",
          std::string(origin), ""};
}

}  // namespace postrider::store
