#include <postrider/inbox.hpp>
#include <postrider/libpq.hpp>

#include "store/common/sql_names.hpp"
#include "store/postgres/libpq_driver.hpp"
#include "store_postgres_sql.hpp"

namespace postrider {
namespace {

namespace statements = sql::store_postgres;

/// A repetition of the transaction finds another state.
Error receipt_vanished() {
  return {ErrorCode::conflict, Disposition::retry,
          "the receipt was deleted while it was looked up. Repeat the whole transaction.",
          "postgres", ""};
}

}  // namespace

Result<InboxResult> PostgresInbox::claim(PostgresDriver& driver,
                                         const InboxMessage& message) const {
  if (auto checked = store::validate(names_, store::SchemaSupport::optional); !checked) {
    return checked.error();
  }
  if (auto checked = check(message); !checked) return checked.error();
  if (auto checked = driver.check_transaction(); !checked) return checked.error();

  const auto& hash = message.content_hash.bytes;
  const std::vector<std::string> parameters = {message.consumer, message.source, message.message_id,
                                               std::string(hash.begin(), hash.end())};
  const auto claimed = driver.run(
      {"inbox_claim", store::substitute_names(statements::inbox_claim, names_), parameters});
  if (!claimed) return claimed.error();
  if (claimed->affected == 1) return InboxResult::processed;

  const auto earlier =
      driver.run({"inbox_get", store::substitute_names(statements::inbox_get, names_), parameters});
  if (!earlier) return earlier.error();
  if (earlier->first_row.empty()) return receipt_vanished();
  if (earlier->first_row[0] != "same") return other_content("postgres");
  return InboxResult::duplicate;
}

Result<InboxResult> PostgresInbox::claim(pg_conn* connection, const InboxMessage& message) const {
  store::postgres::LibpqDriver driver(connection);
  return claim(driver, message);
}

}  // namespace postrider
