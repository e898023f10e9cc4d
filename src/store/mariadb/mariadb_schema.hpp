#pragma once
/// \file
/// What the database says of its migrations, compared with what this build knows.

#include <map>
#include <string>

#include <postrider/result.hpp>

#include "store/mariadb/mariadb_connection.hpp"

namespace postrider::store::mariadb {

/// The steps that the database has, by number; none when it was never migrated.
/// Requires: the connection is ready.
[[nodiscard]] Result<std::map<int, std::string>> applied_steps(MariadbConnection& connection);

/// Errors: `schema_mismatch`, with both numbers, when the database is older or newer than this
///   build.
[[nodiscard]] Result<void> compare_schema(MariadbConnection& connection);

}  // namespace postrider::store::mariadb
