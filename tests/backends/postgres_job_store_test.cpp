// PostgreSQL as a store of jobs: against the suite that defines one.

#include <postrider/testing/job_store_conformance.hpp>

#include "backends/postgres_job_harness.hpp"

namespace postrider::testing {
namespace {

JobStoreCase with_options(const char* name, const PostgresOptions& options) {
  return {name, [options]() -> std::unique_ptr<JobStoreHarness> {
            if (lacks_postgres()) return nullptr;
            return std::make_unique<PostgresJobStoreHarness>(options);
          }};
}

PostgresOptions named() {
  PostgresOptions options;
  options.names = {"shop", "app_"};
  options.partitions = 4;
  return options;
}

INSTANTIATE_TEST_SUITE_P(Postgres, JobStoreConformance,
                         ::testing::Values(with_options("defaults", {}),
                                           with_options("schema_and_prefix", named())),
                         job_case_name);

}  // namespace
}  // namespace postrider::testing
