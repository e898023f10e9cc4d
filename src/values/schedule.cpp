#include <postrider/schedule.hpp>

#include <array>

#include <postrider/content_hash.hpp>

#include "base/timestamp_text.hpp"
#include "values/parse_word.hpp"

// What needs a time zone stands in src/schedule.
namespace postrider {

std::string_view to_string(Missed missed) noexcept {
  switch (missed) {
    case Missed::skip:
      return "skip";
    case Missed::one:
      return "one";
    case Missed::all:
      return "all";
  }
  return "one";
}

std::optional<Missed> parse_missed(std::string_view text) noexcept {
  return parse_word(text, std::array{Missed::skip, Missed::one, Missed::all});
}

NewEvent event_of(const Schedule& schedule, Timestamp slot) {
  NewEvent event;
  event.aggregate = schedule.aggregate;
  event.type = schedule.type;
  event.payload = schedule.payload;
  event.headers = {{std::string(schedule_header), schedule.name},
                   {std::string(slot_header), timestamp_text(slot)}};
  return event;
}

std::string definition_hash(const Schedule& schedule) {
  auto all = event_of(schedule, Timestamp());
  all.headers = {{"cron", schedule.cron},
                 {"time_zone", schedule.time_zone},
                 {"missed", std::string(to_string(schedule.missed))},
                 {"most_missed", std::to_string(schedule.most_missed)}};
  return to_string(content_hash(all));
}

}  // namespace postrider
