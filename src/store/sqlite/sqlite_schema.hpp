#pragma once
/// \file
/// What the database says of its migrations, compared with what this build knows.

#include <map>
#include <string>

#include <postrider/result.hpp>

#include "store/sqlite/sqlite_connection.hpp"

namespace postrider::store::sqlite {

/// The steps that the database has, by number; none when it was never migrated.
/// Requires: the connection is ready.
[[nodiscard]] Result<std::map<int, std::string>> applied_steps(SqliteConnection& connection);

/// Errors: `schema_mismatch`, with both numbers, when the database is older or newer than this
///   build.
[[nodiscard]] Result<void> compare_schema(SqliteConnection& connection);

}  // namespace postrider::store::sqlite
