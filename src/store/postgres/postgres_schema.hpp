#pragma once
/// \file
/// What the database says of its migrations, compared with what this build knows.

#include <map>
#include <string>

#include <postrider/result.hpp>

#include "store/postgres/postgres_connection.hpp"

namespace postrider::store::postgres {

/// The steps that the database has, by number; none when it was never migrated. Inside a
/// transaction (`PostgresConnection::begin`) it belongs to that.
[[nodiscard]] Result<std::map<int, std::string>> applied_steps(PostgresConnection& connection,
                                                               Deadline deadline);

/// Errors: `schema_mismatch` when the database is older or newer than this build, with both
/// numbers, or was made for another number of partitions.
[[nodiscard]] Result<void> compare_schema(PostgresConnection& connection, Deadline deadline);

}  // namespace postrider::store::postgres
