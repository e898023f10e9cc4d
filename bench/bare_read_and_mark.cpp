#include <libpq-fe.h>

#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>

#include "bench/bare.hpp"

namespace postrider::bench {
namespace {

constexpr int binary = 1;

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using Rows = std::unique_ptr<PGresult, decltype(&PQclear)>;

Rows expect(PGresult* result, ExecStatusType status) {
  Rows rows(result, &PQclear);
  if (PQresultStatus(result) != status) throw std::runtime_error(PQresultErrorMessage(result));
  return rows;
}

void put(std::string& bytes, std::uint64_t value, int size) {
  for (int shift = (size - 1) * 8; shift >= 0; shift -= 8)
    bytes += static_cast<char>(value >> shift);
}

/// A bigint[] of the first column, as the server wants it.
std::string seqs_of(const Rows& rows) {
  constexpr std::uint64_t bigint_type = 20;
  const int count = PQntuples(rows.get());
  std::string array;
  put(array, 1, 4);
  put(array, 0, 4);
  put(array, bigint_type, 4);
  put(array, static_cast<std::uint64_t>(count), 4);
  put(array, 1, 4);
  for (int row = 0; row < count; ++row) {
    put(array, 8, 4);
    array.append(PQgetvalue(rows.get(), row, 0), 8);
  }
  return array;
}

/// Looks at each field, and no more.
std::uint64_t touch(const Rows& rows) {
  std::uint64_t sum = 0;
  for (int row = 0; row < PQntuples(rows.get()); ++row) {
    for (int column = 0; column < PQnfields(rows.get()); ++column) {
      const int length = PQgetlength(rows.get(), row, column);
      if (length > 0) sum += static_cast<unsigned char>(*PQgetvalue(rows.get(), row, column));
      sum += static_cast<std::uint64_t>(length);
    }
  }
  return sum;
}

Rows execute(PGconn* connection, const char* statement, const std::string& parameter,
             ExecStatusType status) {
  const std::array<const char*, 1> values = {parameter.data()};
  const std::array<int, 1> lengths = {static_cast<int>(parameter.size())};
  const std::array<int, 1> formats = {binary};
  return expect(PQexecPrepared(connection, statement, 1, values.data(), lengths.data(),
                               formats.data(), binary),
                status);
}

void prepare(PGconn* connection) {
  expect(PQprepare(connection, "read",
                   "SELECT seq, id, aggregate_type, aggregate_id, type, payload, content_type, "
                   "headers, created_at FROM outbox_events WHERE seq > $1::bigint "
                   "ORDER BY seq LIMIT 1000",
                   0, nullptr),
         PGRES_COMMAND_OK);
  expect(PQprepare(connection, "mark",
                   "UPDATE outbox_events SET routed_at = clock_timestamp() "
                   "WHERE seq = ANY ($1::bigint[]) AND routed_at IS NULL",
                   0, nullptr),
         PGRES_COMMAND_OK);
  // As the relay does: plans that do not change their form while the table changes.
  expect(PQexec(connection, "SET plan_cache_mode = force_generic_plan"), PGRES_COMMAND_OK);
  expect(PQexec(connection, "SET enable_seqscan = off"), PGRES_COMMAND_OK);
}

}  // namespace

double read_and_mark(const std::string& conninfo, std::int64_t events) {
  const auto begun = std::chrono::steady_clock::now();
  const Connection connection(PQconnectdb(conninfo.c_str()), &PQfinish);
  if (PQstatus(connection.get()) != CONNECTION_OK) {
    throw std::runtime_error(PQerrorMessage(connection.get()));
  }
  prepare(connection.get());
  std::string position;
  put(position, 0, 8);
  std::uint64_t touched = 0;
  std::int64_t done = 0;
  while (done < events) {
    const auto rows = execute(connection.get(), "read", position, PGRES_TUPLES_OK);
    const int count = PQntuples(rows.get());
    if (count == 0) throw std::runtime_error("fewer events than expected");
    touched += touch(rows);
    execute(connection.get(), "mark", seqs_of(rows), PGRES_COMMAND_OK);
    position.assign(PQgetvalue(rows.get(), count - 1, 0), 8);
    done += count;
  }
  if (touched == 0) throw std::runtime_error("the events are empty");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace postrider::bench
