#pragma once
/// \file
/// Pages of events and deliveries for people.

#include <optional>

#include <postrider/listing.hpp>

#include "store/postgres/postgres_connection.hpp"

namespace postrider::store::postgres {

Result<EventPage> list_events(PostgresConnection& connection, const EventFilter& filter,
                              std::optional<Timestamp> now, Deadline deadline);
Result<std::optional<EventDetail>> show_event(PostgresConnection& connection, const EventId& id,
                                              bool with_payload, Deadline deadline);
Result<DeliveryPage> list_deliveries(PostgresConnection& connection, const DeliveryFilter& filter,
                                     std::optional<Timestamp> now, Deadline deadline);

}  // namespace postrider::store::postgres
