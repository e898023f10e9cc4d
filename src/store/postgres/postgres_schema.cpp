#include "store/postgres/postgres_schema.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "store_postgres_sql.hpp"

namespace postrider::store::postgres {
namespace {

namespace statements = sql::store_postgres;

Error mismatch(std::string message) {
  return {ErrorCode::schema_mismatch, Disposition::stop, std::move(message), "postgres", ""};
}

Result<void> compare_steps(const std::map<int, std::string>& applied) {
  const int newest = std::rbegin(statements::migrations)->number;
  const int has = applied.empty() ? 0 : applied.rbegin()->first;
  if (has > newest) {
    return mismatch(fmt::format(
        "the database is at schema {} and this build knows {}. Install the newer Postrider, or "
        "take it back with the `postrider migrate` that brought it there.",
        has, newest));
  }
  for (const auto& step : statements::migrations) {
    const auto found = applied.find(step.number);
    if (found == applied.end()) {
      return mismatch(
          fmt::format("the database is at schema {} and this build needs {}. Run `postrider "
                      "migrate`.",
                      has, newest));
    }
    if (found->second != step.name) {
      return mismatch(
          fmt::format("step {} of the database's schema is called {} and {} in this "
                      "build. Use the Postrider whose `postrider migrate` made it.",
                      step.number, found->second, step.name));
    }
  }
  return {};
}

}  // namespace

Result<std::map<int, std::string>> applied_steps(PostgresConnection& connection,
                                                 Deadline deadline) {
  std::map<int, std::string> steps;
  const auto exists = connection.read(std::vector<Call>{{"schema_exists"}}, deadline);
  if (!exists) return exists.error();
  if (!exists->front().boolean(0, 0)) return steps;
  const auto results = connection.read(std::vector<Call>{{"schema_applied"}}, deadline);
  if (!results) return results.error();
  const auto& rows = results->front();
  for (int row = 0; row < rows.size(); ++row) {
    steps.emplace(rows.small_integer(row, 0), std::string(rows.text(row, 1)));
  }
  return steps;
}

Result<void> compare_schema(PostgresConnection& connection, Deadline deadline) {
  const auto applied = applied_steps(connection, deadline);
  if (!applied) return applied.error();
  if (auto compared = compare_steps(*applied); !compared) return compared;
  const auto counted = connection.read(std::vector<Call>{{"partitions_count"}}, deadline);
  if (!counted) return counted.error();
  const auto has = counted->front().integer(0, 0);
  const int wanted = connection.options().partitions;
  if (has == wanted) return {};
  return mismatch(
      fmt::format("the database was made for {} partitions and {} are configured. Set "
                  "the number back to {}.",
                  has, wanted, has));
}

}  // namespace postrider::store::postgres
