#pragma once
/// \file
/// Writing events in an open transaction, on our own connection and on an application's alike.

#include <set>
#include <span>
#include <string>
#include <vector>

#include <postrider/event.hpp>
#include <postrider/ids.hpp>
#include <postrider/result.hpp>

#include "store/common/outbox_writing.hpp"
#include "store/mariadb/mariadb_rows.hpp"
#include "store_mariadb_sql.hpp"

namespace postrider::store::mariadb {

/// Text of one INSERT; a single event may be larger. Far below the least max_allowed_packet.
inline constexpr std::size_t most_tuples_bytes = std::size_t{512} << 10U;

/// Locks the aggregates of several events in one order, so that two writers never wait for each
/// other.
template <class Connection>
Result<void> lock_aggregates(Connection& connection, std::span<const NewEvent> events) {
  std::set<std::string> names;
  for (const auto& event : events) {
    if (event.aggregate) names.insert(event.aggregate->type + "/" + event.aggregate->id);
  }
  if (names.size() < 2) return {};
  auto rows = connection.query(sql::store_mariadb::events_lock_aggregates);
  for (const auto& name : names)
    rows.bind_bytes(":name", name).end_tuple();
  return rows.run();
}

/// Writes events in their order, each under its id.
template <class Connection>
Result<void> insert_events(Connection& connection, std::span<const NewEvent> events,
                           std::span<const EventId> ids) {
  if (events.empty()) return {};
  if (auto locked = lock_aggregates(connection, events); !locked) return locked;
  std::int64_t in_statement = 0;
  auto rows = connection.query(sql::store_mariadb::events_insert);
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (auto bound = bind_event(rows, events[i], ids[i]); !bound) return bound;
    rows.end_tuple();
    ++in_statement;
    if (rows.tuples_size() < most_tuples_bytes && i + 1 < events.size()) continue;
    if (auto written = rows.run(); !written) return written;
    if (connection.changes() != in_statement) return nothing_written("mariadb");
    rows = connection.query(sql::store_mariadb::events_insert);
    in_statement = 0;
  }
  return {};
}

}  // namespace postrider::store::mariadb
