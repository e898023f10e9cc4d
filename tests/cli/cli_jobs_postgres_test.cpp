// The commands of jobs on PostgreSQL.

#include "backends/postgres_database.hpp"
#include "cli/cli_jobs.hpp"

namespace postrider::testing {
namespace {

std::optional<CliDatabase> fresh_database() {
  if (lacks_postgres()) return std::nullopt;
  auto database = std::make_shared<PostgresDatabase>();
  const auto store =
      "postgresql://postgres@127.0.0.1:" + std::to_string(database->server().port()) + "/" +
      database->name();
  return CliDatabase{store, std::move(database)};
}

INSTANTIATE_TEST_SUITE_P(Postgres, CliJobs,
                         ::testing::Values(CliJobsCase{"defaults", fresh_database}),
                         cli_jobs_case_name);

}  // namespace
}  // namespace postrider::testing
