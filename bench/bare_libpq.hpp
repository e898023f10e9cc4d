#pragma once
/// \file
/// What the bare loops say to PostgreSQL: prepared, binary, one answer at a time.

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace postrider::bench {

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using Rows = std::unique_ptr<PGresult, decltype(&PQclear)>;

inline Rows expect(PGresult* result, ExecStatusType status) {
  Rows rows(result, &PQclear);
  if (PQresultStatus(result) != status) throw std::runtime_error(PQresultErrorMessage(result));
  return rows;
}

/// A session with plans that do not change their form while a table changes, as the product's are.
inline Connection open_session(const std::string& conninfo) {
  Connection connection(PQconnectdb(conninfo.c_str()), &PQfinish);
  if (PQstatus(connection.get()) != CONNECTION_OK) {
    throw std::runtime_error(PQerrorMessage(connection.get()));
  }
  expect(PQexec(connection.get(), "SET plan_cache_mode = force_generic_plan"), PGRES_COMMAND_OK);
  expect(PQexec(connection.get(), "SET enable_seqscan = off"), PGRES_COMMAND_OK);
  expect(PQexec(connection.get(), "SET jit = off"), PGRES_COMMAND_OK);
  return connection;
}

inline void prepare(const Connection& connection, const char* name, const std::string& sql) {
  expect(PQprepare(connection.get(), name, sql.c_str(), 0, nullptr), PGRES_COMMAND_OK);
}

inline Rows execute(const Connection& connection, const char* statement,
                    const std::vector<std::string>& parameters, ExecStatusType status) {
  constexpr int binary = 1;
  std::vector<const char*> values;
  std::vector<int> lengths;
  for (const auto& parameter : parameters) {
    values.push_back(parameter.data());
    lengths.push_back(static_cast<int>(parameter.size()));
  }
  const std::vector<int> formats(parameters.size(), binary);
  return expect(PQexecPrepared(connection.get(), statement, static_cast<int>(parameters.size()),
                               values.data(), lengths.data(), formats.data(), binary),
                status);
}

/// `size` bytes, as the server wants them.
inline void put(std::string& bytes, std::uint64_t value, int size) {
  for (int shift = (size - 1) * 8; shift >= 0; shift -= 8)
    bytes += static_cast<char>(value >> shift);
}

/// An array of the first column, whose type has the oid `type`, as the server wants it.
inline std::string array_of_first_column(const Rows& rows, std::uint64_t type) {
  const int count = PQntuples(rows.get());
  std::string array;
  put(array, 1, 4);
  put(array, 0, 4);
  put(array, type, 4);
  put(array, static_cast<std::uint64_t>(count), 4);
  put(array, 1, 4);
  for (int row = 0; row < count; ++row) {
    const int length = PQgetlength(rows.get(), row, 0);
    put(array, static_cast<std::uint64_t>(length), 4);
    array.append(PQgetvalue(rows.get(), row, 0), static_cast<std::size_t>(length));
  }
  return array;
}

/// Looks at each field, and no more.
inline std::uint64_t touch(const Rows& rows) {
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

}  // namespace postrider::bench
