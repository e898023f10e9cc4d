#include <postrider/attempt.hpp>

#include <utility>

#include "base/utf8.hpp"
#include "values/name_check.hpp"

namespace postrider {

Attempt::Attempt(const Task& task, AttemptDesk& desk, std::stop_token stop)
    : task_(task), desk_(desk), stop_(std::move(stop)) {}

Result<bool> Attempt::is_current() {
  const auto state = desk_.touch(update());
  if (!state) return state.error();
  return state->current;
}

Result<AttemptState> Attempt::extend(milliseconds duration) {
  if (duration <= milliseconds(0)) {
    return invalid_value("an attempt was to be extended by " + std::to_string(duration.count()) +
                         " ms. Give a duration of at least 1 ms.");
  }
  auto asked = update();
  asked.extend = duration;
  return desk_.touch(std::move(asked));
}

Result<AttemptState> Attempt::progress(int percent, std::string_view note) {
  if (percent < 0 || percent > 100) {
    return invalid_value("the progress of an attempt is " + std::to_string(percent) +
                         " percent. Give 0 to 100.");
  }
  if (auto checked = check_text("the note of an attempt", note); !checked) return checked.error();
  auto told = update();
  told.percent = percent;
  told.note = utf8_prefix(note, AttemptUpdate::most_note_bytes);
  return desk_.touch(std::move(told));
}

Result<AttemptState> Attempt::checkpoint(std::string_view cursor) {
  if (cursor.size() > AttemptUpdate::most_checkpoint_bytes) {
    return over_limit("the checkpoint of an attempt", cursor.size(),
                      AttemptUpdate::most_checkpoint_bytes,
                      "Keep large state in a table of your own and its key here.");
  }
  auto told = update();
  told.checkpoint = cursor;
  return desk_.touch(std::move(told));
}

AttemptUpdate Attempt::update() const {
  AttemptUpdate update;
  update.delivery_id = delivery_id();
  update.dispatch_id = dispatch_id();
  return update;
}

}  // namespace postrider
