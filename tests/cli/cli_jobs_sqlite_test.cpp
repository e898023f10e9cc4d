// The commands of jobs on SQLite.

#include "cli/cli_jobs.hpp"

namespace postrider::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Sqlite, CliJobs,
                         ::testing::Values(CliJobsCase{
                             "wal",
                             [] {
                               return std::optional(CliDatabase{"sqlite:app.db", nullptr});
                             }}),
                         cli_jobs_case_name);

}  // namespace
}  // namespace postrider::testing
