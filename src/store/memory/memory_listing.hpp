#pragma once
/// \file
/// Pages of events and deliveries for people, read from the tables in memory.

#include <optional>

#include <postrider/listing.hpp>

#include "store/memory/memory_database.hpp"

namespace postrider::testing {

EventPage list_events(const Tables& tables, const EventFilter& filter, Timestamp now);
std::optional<EventDetail> show_event(const Tables& tables, const EventId& id, bool with_payload);
DeliveryPage list_deliveries(const Tables& tables, const DeliveryFilter& filter, Timestamp now);

}  // namespace postrider::testing
