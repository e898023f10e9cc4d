#pragma once
/// \file
/// Events as people and scripts see them. Never a payload unless it was asked for, never the value
/// of a header.

#include <string>
#include <vector>

#include <postrider/listing.hpp>

#include "cli/console.hpp"

namespace postrider::cli {

[[nodiscard]] std::string events_text(const std::vector<EventSummary>& events,
                                      const Console& console);
[[nodiscard]] std::string events_json(const EventPage& page);

/// One event with its deliveries, their history included.
[[nodiscard]] std::string event_text(const EventDetail& event,
                                     const std::vector<ListedDelivery>& deliveries,
                                     const Console& console);
[[nodiscard]] std::string event_json(const EventDetail& event,
                                     const std::vector<ListedDelivery>& deliveries);

}  // namespace postrider::cli
