#pragma once
/// \file
/// Writing an event once per idempotency key, on our own connection and on an application's alike.
///
/// Requires: a transaction that may write is open; after an error the caller rolls it back.

#include <postrider/content_hash.hpp>
#include <postrider/event.hpp>
#include <postrider/ids.hpp>
#include <postrider/result.hpp>

#include "store/common/outbox_writing.hpp"
#include "store/sqlite/sqlite_connection.hpp"
#include "store/sqlite/sqlite_rows.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider::store::sqlite {

inline void bind_key(SqliteQuery& row, const IdempotencyKey& key, const ContentHash& hash) {
  row.bind(":scope", key.scope).bind(":key", key.key);
  row.bind_borrowed_bytes(":content_hash",
                          {reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size()});
}

/// The id of the event that took the key before, if it had the same content.
template <class Connection>
Result<EventId> earlier_id(Connection& connection, const IdempotencyKey& key,
                           const ContentHash& hash) {
  auto row = connection.query(sql::store_sqlite::keys_get);
  bind_key(row, key, hash);
  if (!row.next()) {
    if (auto read = row.result(); !read) return read.error();
    return nothing_written("sqlite");
  }
  if (row.text(1) != "same") return key_was_reused("sqlite");
  const auto id = Uuid::parse(row.text(0));
  if (!id) return id.error();
  return EventId(*id);
}

/// `insert` writes the event under `id`, and is called if nobody took the key before.
template <class Connection, class Insert>
Result<EventId> insert_once(Connection& connection, const NewEvent& event, const EventId& id,
                            const IdempotencyKey& key, Insert insert) {
  const auto hash = content_hash(event);
  auto claim = connection.query(sql::store_sqlite::keys_claim);
  bind_key(claim, key, hash);
  claim.bind(":event_id", id_text(id.value()));
  if (auto claimed = claim.run(); !claimed) return claimed.error();
  if (connection.changes() != 1) return earlier_id(connection, key, hash);
  if (auto written = insert(); !written) return written.error();
  return id;
}

}  // namespace postrider::store::sqlite
