#include <postrider/inbox.hpp>
#include <postrider/mariadb.hpp>

#include "store/common/outbox_writing.hpp"
#include "store/common/sql_names.hpp"
#include "store/mariadb/mariadb_borrowed.hpp"
#include "store_mariadb_sql.hpp"

namespace postrider {
namespace {

using store::mariadb::MariadbQuery;

void bind_message(MariadbQuery& row, const InboxMessage& message) {
  const auto& hash = message.content_hash.bytes;
  row.bind(":consumer", message.consumer).bind(":source", message.source);
  row.bind(":message_id", message.message_id);
  row.bind_bytes(":content_hash", {reinterpret_cast<const char*>(hash.data()), hash.size()});
}

}  // namespace

Result<InboxResult> MariadbInbox::claim(st_mysql* connection, const InboxMessage& message) const {
  if (auto checked = store::validate(names_, store::SchemaSupport::none); !checked) {
    return checked.error();
  }
  if (auto checked = check(message); !checked) return checked.error();
  store::mariadb::BorrowedMariadb borrowed(connection, names_);
  if (auto checked = borrowed.check_transaction(); !checked) return checked.error();
  auto claim = borrowed.query(sql::store_mariadb::inbox_claim);
  bind_message(claim, message);
  auto claimed = claim.run();
  if (claimed) return InboxResult::processed;
  // The statement alone is undone; the transaction goes on.
  if (claimed.error().code != ErrorCode::already_exists) return claimed.error();

  auto before = borrowed.query(sql::store_mariadb::inbox_get);
  bind_message(before, message);
  if (!before.next()) {
    if (auto read = before.result(); !read) return read.error();
    return store::key_vanished("mariadb");
  }
  if (before.text(0) != "same") return other_content("mariadb");
  return InboxResult::duplicate;
}

}  // namespace postrider
