#include "store/mariadb/mariadb_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "store_mariadb_sql.hpp"

namespace postrider::store::mariadb {
namespace {

namespace statements = sql::store_mariadb;

Error mismatch(std::string message) {
  return {ErrorCode::schema_mismatch, Disposition::stop, std::move(message), "mariadb", ""};
}

/// F51: on a table without transactions a rolled back event would stay, and be sent.
Result<void> check_engines(MariadbConnection& connection) {
  auto tables = connection.query(statements::schema_engines);
  if (!tables.next()) return tables.result();
  return mismatch(
      fmt::format("engine_not_transactional: the table {} was converted to an engine without "
                  "transactions. Run ALTER TABLE {} ENGINE = InnoDB.",
                  tables.text(0), tables.text(0)));
}

/// A relay that counts other partitions would look for events in the wrong ones.
Result<void> check_partitions(MariadbConnection& connection) {
  auto counted = connection.query(statements::partitions_count);
  if (!counted.next()) return counted.result();
  const auto has = counted.integer(0);
  const int wanted = connection.options().partitions;
  if (has == wanted) return {};
  return mismatch(
      fmt::format("the database was made for {} partitions and {} are configured. Set the "
                  "partitions to {}.",
                  has, wanted, has));
}

}  // namespace

Result<std::map<int, std::string>> applied_steps(MariadbConnection& connection) {
  std::map<int, std::string> steps;
  {
    auto table = connection.query(statements::schema_exists);
    const bool exists = table.next();
    if (auto read = table.result(); !read) return read.error();
    if (!exists) return steps;
  }
  auto rows = connection.query(statements::schema_applied);
  while (rows.next())
    steps.emplace(static_cast<int>(rows.integer(0)), rows.text(1));
  if (auto read = rows.result(); !read) return read.error();
  return steps;
}

Result<void> compare_schema(MariadbConnection& connection) {
  const auto applied = applied_steps(connection);
  if (!applied) return applied.error();
  const int newest = std::rbegin(statements::migrations)->number;
  const int has = applied->empty() ? 0 : applied->rbegin()->first;
  if (has > newest) {
    return mismatch(fmt::format(
        "the database is at schema {} and this build knows {}. Install the newer "
        "Postrider, or take it back with the `postrider migrate` that brought it there.",
        has, newest));
  }
  for (const auto& step : statements::migrations) {
    const auto found = applied->find(step.number);
    if (found != applied->end() && found->second == step.name) continue;
    if (found != applied->end()) {
      return mismatch(
          fmt::format("step {} of the database's schema is called {} and {} in this "
                      "build. Use the Postrider whose `postrider migrate` made it.",
                      step.number, found->second, step.name));
    }
    return mismatch(fmt::format(
        "the database is at schema {} and this build needs {}. Run `postrider migrate`.", has,
        newest));
  }
  if (auto checked = check_engines(connection); !checked) return checked;
  return check_partitions(connection);
}

}  // namespace postrider::store::mariadb
