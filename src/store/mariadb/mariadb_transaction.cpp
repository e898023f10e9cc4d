#include <mariadb/mysql.h>

#include <postrider/mariadb.hpp>

#include "store/mariadb/mariadb_borrowed.hpp"

namespace postrider {
namespace {

using store::mariadb::in_transaction;
using store::mariadb::Phase;
using store::mariadb::run_plain;

Error refused_use(ErrorCode code, std::string_view message) {
  return {code, Disposition::reject, std::string(message), "mariadb", ""};
}

}  // namespace

Result<MariadbTransaction> MariadbTransaction::begin(st_mysql* connection) {
  if (connection == nullptr) {
    return refused_use(ErrorCode::invalid_argument, "the connection is null. Connect first.");
  }
  // In a session without autocommit the next statement would begin one anyway.
  unsigned status = 0;
  mariadb_get_infov(connection, MARIADB_CONNECTION_SERVER_STATUS, &status);
  if ((status & SERVER_STATUS_IN_TRANS) != 0) {
    return refused_use(
        ErrorCode::invalid_argument,
        "a transaction is open on this connection already. Add to that one, or end it.");
  }
  if (auto begun = run_plain(connection, "START TRANSACTION", Phase::ordinary); !begun) {
    return std::move(begun).error();
  }
  return MariadbTransaction(connection);
}

MariadbTransaction::~MariadbTransaction() {
  roll_back();
}

Result<void> MariadbTransaction::commit() {
  if (connection_ == nullptr || !in_transaction(connection_)) {
    connection_ = nullptr;
    return refused_use(
        ErrorCode::no_transaction,
        "the transaction has ended before its commit: a deadlock rolled it back, a statement "
        "such as CREATE TABLE committed it, or the work ended it. Return the error of each "
        "statement, and leave COMMIT and ROLLBACK to the transaction.");
  }
  auto committed = run_plain(connection_, "COMMIT", Phase::commit);
  if (!committed) roll_back();
  connection_ = nullptr;
  return committed;
}

void MariadbTransaction::roll_back() noexcept {
  if (connection_ != nullptr && in_transaction(connection_)) {
    static_cast<void>(run_plain(connection_, "ROLLBACK", Phase::ordinary));
  }
  connection_ = nullptr;
}

}  // namespace postrider
