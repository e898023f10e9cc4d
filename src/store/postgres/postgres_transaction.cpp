#include <fmt/format.h>
#include <libpq-fe.h>

#include <charconv>

#include <postrider/libpq.hpp>

#include "store/postgres/libpq_driver.hpp"
#include "store/postgres/postgres_errors.hpp"
#include "store_postgres_sql.hpp"

namespace postrider {
namespace {

namespace statements = sql::store_postgres;
using store::postgres::check_idle_handle;
using store::postgres::LibpqDriver;
using store::postgres::ResultHandle;
using store::postgres::Stage;

constexpr std::string_view ticket_word = "xid ";
constexpr std::string_view server_word = " on ";

Error refused(ErrorCode code, std::string_view message) {
  return {code, Disposition::reject, std::string(message), "postgres", ""};
}

std::optional<std::uint64_t> parse_xid(std::string_view text) {
  std::uint64_t xid = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, xid);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return xid;
}

/// The error with which COMMIT ended, with the ticket beside the server's own code.
Error commit_failure(pg_conn* connection, const pg_result* result, const CommitTicket& ticket) {
  const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* const message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const char* const constraint = PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
  const auto text = [](const char* field) { return field == nullptr ? "" : field; };
  Error error =
      state == nullptr
          ? store::postgres::connection_lost(PQerrorMessage(connection), "COMMIT", Stage::commit)
          : store::postgres::server_error(state, text(message), text(constraint), "COMMIT",
                                          Stage::commit);
  if (error.code != ErrorCode::commit_unknown) return error;
  if (!error.native_code.empty()) error.native_code += ", ";
  error.native_code += to_string(ticket);
  return error;
}

Error cannot_know() {
  return {ErrorCode::commit_unknown, Disposition::in_doubt,
          "this server cannot tell what became of the transaction: it is another server, it is "
          "after a failover, or the transaction is too old. Look for the event by its id.",
          "postgres", ""};
}

/// Status 22023: the number lies in the future, so this server never gave it out.
bool is_foreign_number(const Error& error) {
  return error.native_code == "22023";
}

}  // namespace

std::string to_string(const CommitTicket& ticket) {
  return fmt::format("{}{}{}{}", ticket_word, ticket.xid, server_word, ticket.server);
}

Result<CommitTicket> commit_ticket(const Error& error) {
  const std::string_view text = error.native_code;
  const auto at = text.rfind(ticket_word);
  const auto server = text.rfind(server_word);
  if (at != std::string_view::npos && server != std::string_view::npos && server > at) {
    const auto number = at + ticket_word.size();
    const auto xid = parse_xid(text.substr(number, server - number));
    if (xid) return CommitTicket{*xid, std::string(text.substr(server + server_word.size()))};
  }
  return Error{ErrorCode::not_found, Disposition::reject,
               "the error carries no ticket. Only a commit_unknown of PostgresTransaction does.",
               "postgres", ""};
}

Result<CommitState> resolve_commit(pg_conn* connection, const CommitTicket& ticket) {
  if (auto checked = check_idle_handle(connection); !checked) return checked.error();
  if (PQtransactionStatus(connection) != PQTRANS_IDLE) {
    return refused(ErrorCode::invalid_argument,
                   "a transaction is open on the connection. End it, or use another connection.");
  }
  const PostgresCall call{"transactions_status",
                          std::string(statements::transactions_status),
                          {std::to_string(ticket.xid), ticket.server}};
  const auto answer = LibpqDriver(connection).run(call);
  if (!answer && is_foreign_number(answer.error())) return cannot_know();
  if (!answer) return answer.error();
  const auto status = answer->first_row.at(0);
  if (status == "committed") return CommitState::committed;
  if (status == "aborted") return CommitState::aborted;
  if (status == "in progress") return CommitState::open;
  return cannot_know();
}

Result<PostgresTransaction> PostgresTransaction::begin(pg_conn* connection) {
  if (auto checked = check_idle_handle(connection); !checked) return checked.error();
  if (PQtransactionStatus(connection) != PQTRANS_IDLE) {
    return refused(ErrorCode::invalid_argument,
                   "a transaction is open on this connection already. Add to that one, or end it.");
  }
  // Two statements, one round trip; the last one's answer comes back.
  const auto sql = fmt::format("BEGIN; {}", statements::transactions_ticket);
  const ResultHandle result(PQexec(connection, sql.c_str()));
  // From here on whatever was begun is rolled back on the way out.
  PostgresTransaction transaction(connection, {});
  if (PQresultStatus(result.get()) != PGRES_TUPLES_OK) {
    return store::postgres::error_of(connection, result.get(), "BEGIN");
  }
  const auto xid = parse_xid(PQgetvalue(result.get(), 0, 0));
  if (!xid) {
    return Error{ErrorCode::protocol, Disposition::retry,
                 "the server gave no number to the transaction. Try again.", "postgres", ""};
  }
  transaction.ticket_ = {*xid, PQgetvalue(result.get(), 0, 1)};
  return transaction;
}

PostgresTransaction::~PostgresTransaction() {
  roll_back();
}

Result<void> PostgresTransaction::commit() {
  const auto status = connection_ == nullptr ? PQTRANS_UNKNOWN : PQtransactionStatus(connection_);
  if (status == PQTRANS_INERROR || status == PQTRANS_IDLE || connection_ == nullptr) {
    roll_back();
    return refused(ErrorCode::no_transaction,
                   "the transaction cannot commit: one of its statements failed, or the work ended "
                   "it. Return the error of each statement, and leave COMMIT and ROLLBACK to the "
                   "transaction.");
  }
  if (status == PQTRANS_UNKNOWN) {
    // COMMIT was never sent, so the server rolls back.
    const auto lost = store::postgres::connection_lost(PQerrorMessage(connection_), "the work",
                                                       Stage::before_commit);
    connection_ = nullptr;
    return lost;
  }
  const ResultHandle result(PQexec(connection_, "COMMIT"));
  const bool done = PQresultStatus(result.get()) == PGRES_COMMAND_OK;
  if (done && std::string_view(PQcmdStatus(result.get())) == "COMMIT") {
    connection_ = nullptr;
    return {};
  }
  auto failure = done ? refused(ErrorCode::no_transaction,
                                "the server rolled back instead of committing. Repeat the work.")
                      : commit_failure(connection_, result.get(), ticket_);
  roll_back();
  return failure;
}

void PostgresTransaction::roll_back() noexcept {
  if (connection_ == nullptr) return;
  const auto status = PQtransactionStatus(connection_);
  if (status == PQTRANS_INTRANS || status == PQTRANS_INERROR) {
    const ResultHandle ended(PQexec(connection_, "ROLLBACK"));
  }
  connection_ = nullptr;
}

}  // namespace postrider
