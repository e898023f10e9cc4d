#include <postrider/event.hpp>
#include <postrider/inbox.hpp>

#include "values/name_check.hpp"

namespace postrider {

Result<void> check(const InboxMessage& message) {
  constexpr std::size_t most_bytes = EventLimits().name_bytes;
  if (auto checked = check_name("the consumer", message.consumer, most_bytes); !checked) {
    return checked;
  }
  if (auto checked = check_name("the source", message.source, most_bytes); !checked) {
    return checked;
  }
  return check_name("the message id", message.message_id, most_bytes);
}

std::string_view to_string(InboxResult result) noexcept {
  switch (result) {
    case InboxResult::processed:
      return "processed";
    case InboxResult::duplicate:
      return "duplicate";
  }
  return "processed";
}

Error other_content(std::string_view origin) {
  return {ErrorCode::conflict, Disposition::reject,
          "a message with this id was processed before with other content. Do not acknowledge it: "
          "set it aside, and look for a sender that uses an id twice.",
          std::string(origin), ""};
}

}  // namespace postrider
