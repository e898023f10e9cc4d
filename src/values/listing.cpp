#include <postrider/listing.hpp>

#include <fmt/format.h>

namespace postrider {
namespace {

Result<void> check_range(std::string_view what, std::size_t value, std::size_t most) {
  if (value >= 1 && value <= most) return {};
  return Error{ErrorCode::invalid_argument, Disposition::reject,
               fmt::format("the {} is {}. Give 1 to {}.", what, value, most), "listing", ""};
}

Result<void> check_page(std::size_t limit, std::size_t examine) {
  if (auto checked = check_range("limit", limit, most_listed); !checked) return checked;
  return check_range("number of rows to examine", examine, most_examined);
}

}  // namespace

std::string_view to_string(EventState state) noexcept {
  switch (state) {
    case EventState::unrouted:
      return "unrouted";
    case EventState::held:
      return "held";
    case EventState::routed:
      return "routed";
  }
  return "unknown";
}

std::optional<EventState> parse_event_state(std::string_view text) noexcept {
  for (const auto state : {EventState::unrouted, EventState::held, EventState::routed}) {
    if (to_string(state) == text) return state;
  }
  return std::nullopt;
}

Result<void> check(const EventFilter& filter) {
  return check_page(filter.limit, filter.examine);
}

Result<void> check(const DeliveryFilter& filter) {
  return check_page(filter.limit, filter.examine);
}

}  // namespace postrider
