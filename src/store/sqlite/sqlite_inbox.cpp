#include <postrider/inbox.hpp>
#include <postrider/sqlite.hpp>

#include "store/common/outbox_writing.hpp"
#include "store/common/sql_names.hpp"
#include "store/sqlite/sqlite_borrowed.hpp"
#include "store_sqlite_sql.hpp"

namespace postrider {
namespace {

namespace statements = sql::store_sqlite;
using store::sqlite::SqliteQuery;

void bind_message(SqliteQuery& row, const InboxMessage& message) {
  const auto& hash = message.content_hash.bytes;
  row.bind(":consumer", message.consumer).bind(":source", message.source);
  row.bind(":message_id", message.message_id);
  row.bind_borrowed_bytes(":content_hash",
                          {reinterpret_cast<const char*>(hash.data()), hash.size()});
}

}  // namespace

Result<InboxResult> SqliteInbox::claim(sqlite3* database, const InboxMessage& message) const {
  if (auto checked = store::validate(names_, store::SchemaSupport::none); !checked) {
    return checked.error();
  }
  if (auto checked = check(message); !checked) return checked.error();
  store::sqlite::BorrowedSqlite connection(database, names_);
  if (auto checked = connection.check_transaction(); !checked) return checked.error();

  auto claim = connection.query(statements::inbox_claim);
  bind_message(claim, message);
  if (auto claimed = claim.run(); !claimed) return claimed.error();
  if (connection.changes() == 1) return InboxResult::processed;

  auto earlier = connection.query(statements::inbox_get);
  bind_message(earlier, message);
  if (!earlier.next()) {
    if (auto read = earlier.result(); !read) return read.error();
    return store::nothing_written("sqlite");
  }
  if (earlier.text(0) != "same") return other_content("sqlite");
  return InboxResult::duplicate;
}

}  // namespace postrider
