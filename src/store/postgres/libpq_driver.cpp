#include "store/postgres/libpq_driver.hpp"

#include <libpq-fe.h>

#include <charconv>
#include <string>
#include <vector>

#include "store/postgres/postgres_error_field.hpp"
#include "store/postgres/postgres_errors.hpp"

namespace postrider {
namespace store::postgres {
namespace {

Error refused(ErrorCode code, std::string_view message) {
  return {code, Disposition::reject, std::string(message), "postgres", ""};
}

std::int64_t affected_rows(pg_result* result) {
  const std::string_view text = PQcmdTuples(result);
  std::int64_t rows = 0;
  std::from_chars(text.data(), text.data() + text.size(), rows);
  return rows;
}

PostgresAnswer read_answer(pg_result* result) {
  PostgresAnswer answer;
  answer.affected = affected_rows(result);
  if (PQntuples(result) == 0) return answer;
  for (int column = 0; column < PQnfields(result); ++column) {
    if (PQgetisnull(result, 0, column) != 0) {
      answer.first_row.emplace_back(std::nullopt);
    } else {
      answer.first_row.emplace_back(PQgetvalue(result, 0, column));
    }
  }
  return answer;
}

}  // namespace

void ClearResult::operator()(pg_result* result) const noexcept {
  PQclear(result);
}

Error error_of(pg_conn* connection, const pg_result* result, std::string_view doing) {
  const auto state = error_field(result, PG_DIAG_SQLSTATE);
  if (state.empty()) {
    return connection_lost(PQerrorMessage(connection), doing, Stage::before_commit);
  }
  return postgres_error(state, error_field(result, PG_DIAG_MESSAGE_PRIMARY),
                        error_field(result, PG_DIAG_CONSTRAINT_NAME), doing);
}

Result<void> check_idle_handle(pg_conn* connection) {
  if (connection == nullptr) {
    return refused(ErrorCode::invalid_argument, "the connection is null. Connect first.");
  }
  if (PQstatus(connection) != CONNECTION_OK) {
    return connection_lost(PQerrorMessage(connection), "the transaction", Stage::before_commit);
  }
  if (PQtransactionStatus(connection) == PQTRANS_ACTIVE) {
    return refused(ErrorCode::invalid_argument,
                   "a command is still running on the connection. Read its results first.");
  }
  if (PQpipelineStatus(connection) != PQ_PIPELINE_OFF) {
    return refused(ErrorCode::invalid_argument,
                   "the connection is in pipeline mode. Leave it before this call.");
  }
  return {};
}

Result<void> LibpqDriver::check_transaction() {
  if (auto checked = check_idle_handle(connection_); !checked) return checked;
  switch (PQtransactionStatus(connection_)) {
    case PQTRANS_INTRANS:
      return check_client_encoding(pg_encoding_to_char(PQclientEncoding(connection_)));
    case PQTRANS_INERROR:
      return refused(ErrorCode::no_transaction,
                     "a statement of the open transaction has failed, so nothing of it can commit. "
                     "Roll it back.");
    default:
      return refused(ErrorCode::no_transaction,
                     "no transaction is open, so the event could not commit together with its "
                     "data. Begin one with BEGIN.");
  }
}

Result<PostgresAnswer> LibpqDriver::run(const PostgresCall& call) {
  std::vector<const char*> values;
  std::vector<int> lengths;
  for (const auto& parameter : call.parameters) {
    values.push_back(parameter.data());
    lengths.push_back(static_cast<int>(parameter.size()));
  }
  const std::vector<int> formats(values.size(), 1);
  const ResultHandle result(PQexecParams(connection_, call.sql.c_str(),
                                         static_cast<int>(values.size()), nullptr, values.data(),
                                         lengths.data(), formats.data(), 0));
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
    return error_of(connection_, result.get(), call.name);
  }
  return read_answer(result.get());
}

}  // namespace store::postgres

Error postgres_error(std::string_view sqlstate, std::string_view server_message,
                     std::string_view constraint, std::string_view doing) {
  using store::postgres::Stage;
  if (sqlstate.empty()) {
    return store::postgres::connection_lost(server_message, doing, Stage::before_commit);
  }
  if (sqlstate == "25P02") {
    return {ErrorCode::no_transaction, Disposition::reject,
            "a statement of the open transaction has failed, so nothing of it can commit. Roll it "
            "back.",
            "postgres", std::string(sqlstate)};
  }
  return store::postgres::server_error(sqlstate, server_message, constraint, doing,
                                       Stage::before_commit);
}

Result<void> check_client_encoding(std::string_view encoding) {
  if (encoding == "UTF8") return {};
  return Error{ErrorCode::unsupported, Disposition::stop,
               "the connection's client_encoding is not UTF8, so the server would change the bytes "
               "of texts. Set it to UTF8.",
               "postgres", ""};
}

}  // namespace postrider
