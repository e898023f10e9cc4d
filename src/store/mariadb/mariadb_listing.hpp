#pragma once
/// \file
/// Pages of events and deliveries for people. Each function runs in the caller's transaction.

#include <optional>

#include <postrider/listing.hpp>

#include "store/mariadb/mariadb_connection.hpp"

namespace postrider::store::mariadb {

Result<EventPage> list_events(MariadbConnection& connection, const EventFilter& filter,
                              Timestamp now);
Result<std::optional<EventDetail>> show_event(MariadbConnection& connection, const EventId& id,
                                              bool with_payload);
Result<DeliveryPage> list_deliveries(MariadbConnection& connection, const DeliveryFilter& filter,
                                     Timestamp now);

}  // namespace postrider::store::mariadb
