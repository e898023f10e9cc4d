#pragma once
/// \file
/// The bounds of what a running attempt may write, the same for every store.
///
/// Thread safety: functions without state.

#include <string>
#include <string_view>

#include <postrider/job_store_values.hpp>
#include <postrider/result.hpp>

namespace postrider::store {

/// Errors: `invalid_argument` and `limit_exceeded`; `origin` is the store's name.
[[nodiscard]] inline Result<void> check_attempt(const AttemptUpdate& update,
                                                std::string_view origin) {
  const auto refuse = [&](ErrorCode code, std::string message) {
    return Error{code, Disposition::reject, std::move(message), std::string(origin), ""};
  };
  const auto too_long = [&](std::string_view what, std::size_t has, std::size_t most) {
    return refuse(ErrorCode::limit_exceeded, "the " + std::string(what) + " of the attempt has " +
                                                 std::to_string(has) + " bytes and may have " +
                                                 std::to_string(most) + ". Shorten it.");
  };
  if (update.percent && (*update.percent < 0 || *update.percent > 100)) {
    return refuse(ErrorCode::invalid_argument,
                  "the progress of the attempt is not a percentage. Give 0 to 100.");
  }
  if (update.extend && *update.extend <= milliseconds::zero()) {
    return refuse(ErrorCode::invalid_argument,
                  "the attempt asks for no time at all. Extend it by at least 1 ms.");
  }
  if (update.note && update.note->size() > AttemptUpdate::most_note_bytes) {
    return too_long("note", update.note->size(), AttemptUpdate::most_note_bytes);
  }
  if (update.checkpoint && update.checkpoint->size() > AttemptUpdate::most_checkpoint_bytes) {
    return too_long("checkpoint", update.checkpoint->size(), AttemptUpdate::most_checkpoint_bytes);
  }
  return {};
}

}  // namespace postrider::store
