#pragma once
/// \file
/// Names of tables in SQL text: statements and migrations hold the placeholders `{schema}` and
/// `{prefix}`, which are filled in once, when a store object is made.
///
///     SELECT seq FROM {schema}{prefix}outbox_events      as written in the .sql file
///     SELECT seq FROM "shop".app_outbox_events           schema "shop", prefix "app_"
///     SELECT seq FROM outbox_events                      both empty
///
/// Names cannot be bound as parameters, so `validate` is what keeps foreign text out of SQL.
///
/// Thread safety: functions without state.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <postrider/result.hpp>
#include <postrider/schema.hpp>

namespace postrider::store {

inline constexpr std::size_t most_prefix_bytes = 20;
/// Source: PostgreSQL cuts identifiers at 63 bytes.
inline constexpr std::size_t most_schema_bytes = 63;

enum class SchemaSupport : std::uint8_t { none, optional };

/// Prefix: at most 20 of a-z, 0-9, '_', not starting with a digit. Schema: the same with at most
/// 63; it must be empty where the database has none. Names that a database keeps for itself
/// ("sqlite_", "pg_") are refused. Errors: `config_invalid`.
[[nodiscard]] Result<void> validate(const SchemaNames& names, SchemaSupport support);

/// `sql` with `{schema}` replaced by the quoted schema and a dot (nothing when there is none) and
/// `{prefix}` by the prefix. Requires: `validate(names, …)` has passed.
[[nodiscard]] std::string substitute_names(std::string_view sql, const SchemaNames& names);

}  // namespace postrider::store
