#pragma once
/// \file
/// Pages of events and deliveries for people. Each function runs in the caller's transaction.

#include <optional>

#include <postrider/listing.hpp>

#include "store/sqlite/sqlite_connection.hpp"

namespace postrider::store::sqlite {

Result<EventPage> list_events(SqliteConnection& connection, const EventFilter& filter,
                              Timestamp now);
Result<std::optional<EventDetail>> show_event(SqliteConnection& connection, const EventId& id,
                                              bool with_payload);
Result<DeliveryPage> list_deliveries(SqliteConnection& connection, const DeliveryFilter& filter,
                                     Timestamp now);

}  // namespace postrider::store::sqlite
