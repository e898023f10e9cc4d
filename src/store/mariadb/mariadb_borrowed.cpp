#include "store/mariadb/mariadb_borrowed.hpp"

#include <fmt/format.h>
#include <mariadb/mysql.h>

#include <charconv>
#include <cstring>
#include <iterator>

#include "store/common/sql_names.hpp"

namespace postrider::store::mariadb {
namespace {

/// No server takes less than this, so that shorter statements need not ask.
constexpr std::size_t always_taken = std::size_t{1} << 19U;

Error refused_call(ErrorCode code, std::string_view message) {
  return {code, Disposition::reject, std::string(message), "mariadb", ""};
}

Error failed(st_mysql* connection, std::string_view doing, Phase phase) {
  // 2014: the application has not read the rows of its last statement.
  if (mysql_errno(connection) == 2014) {
    return refused_call(
        ErrorCode::invalid_argument,
        "another statement of this connection has rows that were not read. Read all "
        "of them before the call.");
  }
  return mariadb_error(mysql_errno(connection), mysql_error(connection), doing, phase);
}

Result<ResultRows> send(st_mysql* connection, std::string_view sql, std::string_view doing,
                        Phase phase) {
  if (mysql_real_query(connection, sql.data(), sql.size()) != 0) {
    return failed(connection, doing, phase);
  }
  ResultRows rows(mysql_store_result(connection));
  if (rows == nullptr && mysql_errno(connection) != 0) return failed(connection, doing, phase);
  return rows;
}

}  // namespace

bool in_transaction(st_mysql* connection) {
  unsigned status = 0;
  mariadb_get_infov(connection, MARIADB_CONNECTION_SERVER_STATUS, &status);
  return (status & SERVER_STATUS_IN_TRANS) != 0 || (status & SERVER_STATUS_AUTOCOMMIT) == 0;
}

Result<void> run_plain(st_mysql* connection, const char* sql, Phase phase) {
  if (auto done = send(connection, sql, sql, phase); !done) return done.error();
  return {};
}

Result<void> BorrowedMariadb::check_transaction() {
  if (connection_ == nullptr) {
    return refused_call(ErrorCode::invalid_argument, "the connection is null. Connect first.");
  }
  if (in_transaction(connection_)) return {};
  return refused_call(
      ErrorCode::no_transaction,
      "no transaction is open, so the event could not commit together with its data. "
      "Begin one with START TRANSACTION.");
}

MariadbQuery BorrowedMariadb::query(std::string_view statement) {
  auto& text = rendered_[statement.data()];
  if (text.empty()) text = substitute_names(statement, *names_);
  return {*this, text, statement_name(statement)};
}

Result<ResultRows> BorrowedMariadb::execute(const std::string& sql, std::string_view doing) {
  if (auto checked = check_size(sql, doing); !checked) return checked.error();
  auto rows = send(connection_, sql, doing, Phase::ordinary);
  if (rows.ok() && rows.value() == nullptr) {
    changes_ = static_cast<std::int64_t>(mysql_affected_rows(connection_));
  }
  return rows;
}

/// Past the limit the server cuts the connection, and with it the application's transaction.
Result<void> BorrowedMariadb::check_size(const std::string& sql, std::string_view doing) {
  if (sql.size() < always_taken) return {};
  const auto limit = send(connection_, "SELECT @@max_allowed_packet", doing, Phase::ordinary);
  if (!limit) return limit.error();
  std::size_t most = 0;
  if (MYSQL_ROW row = mysql_fetch_row(limit.value().get()); row != nullptr && row[0] != nullptr) {
    std::from_chars(row[0], row[0] + std::strlen(row[0]), most);
  }
  if (most == 0 || sql.size() < most) return {};
  return Error{ErrorCode::limit_exceeded, Disposition::reject,
               fmt::format("{}: the statement has {} bytes, two for each of the payload, and the "
                           "server takes fewer than {}. Make the payload smaller, or raise "
                           "max_allowed_packet.",
                           doing, sql.size(), most),
               "mariadb", "1153"};
}

}  // namespace postrider::store::mariadb
