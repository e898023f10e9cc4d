#pragma once
/// \file
/// Writing an event once per idempotency key, on our own connection and on an application's alike.
///
/// Requires: a transaction is open; after an error the caller rolls it back.

#include <postrider/content_hash.hpp>
#include <postrider/event.hpp>
#include <postrider/ids.hpp>
#include <postrider/result.hpp>

#include "store/common/outbox_writing.hpp"
#include "store/mariadb/mariadb_rows.hpp"
#include "store_mariadb_sql.hpp"

namespace postrider::store::mariadb {

inline void bind_key(MariadbQuery& row, const IdempotencyKey& key, const ContentHash& hash) {
  row.bind(":scope", key.scope).bind(":key", key.key);
  row.bind_bytes(":content_hash",
                 {reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size()});
}

/// The id of the event that took the key before, if it had the same content.
template <class Connection>
Result<EventId> earlier_id(Connection& connection, const IdempotencyKey& key,
                           const ContentHash& hash) {
  auto row = connection.query(sql::store_mariadb::keys_get);
  bind_key(row, key, hash);
  if (!row.next()) {
    if (auto read = row.result(); !read) return read.error();
    return key_vanished("mariadb");
  }
  if (row.text(1) != "same") return key_was_reused("mariadb");
  const auto id = Uuid::parse(row.text(0));
  if (!id) return id.error();
  return EventId(*id);
}

/// `insert` writes the event under `id`, and is called if nobody took the key before.
template <class Connection, class Insert>
Result<EventId> insert_once(Connection& connection, const NewEvent& event, const EventId& id,
                            const IdempotencyKey& key, Insert insert) {
  const auto hash = content_hash(event);
  auto claim = connection.query(sql::store_mariadb::keys_claim);
  bind_key(claim, key, hash);
  claim.bind(":event_id", id_text(id.value()));
  if (auto claimed = claim.run(); !claimed) {
    // The statement alone is undone; the transaction goes on.
    if (claimed.error().code == ErrorCode::already_exists) {
      return earlier_id(connection, key, hash);
    }
    return claimed.error();
  }
  if (auto written = insert(); !written) return written.error();
  return id;
}

}  // namespace postrider::store::mariadb
