// What people may do with jobs on PostgreSQL, against the suite.

#include "backends/postgres_database.hpp"
#include "conformance/job_operations.hpp"

namespace postrider::testing {
namespace {

class PostgresJobOperationsHarness final : public JobOperationsHarness {
 public:
  explicit PostgresJobOperationsHarness(PostgresOptions options) : database_(std::move(options)) {}

  std::unique_ptr<Store> open_store() override { return database_.open_store(); }
  std::unique_ptr<JobStore> open_job_store() override {
    return make_postgres_job_store(database_.options());
  }
  std::unique_ptr<Operations> open_operations() override {
    return make_postgres_operations(database_.options());
  }
  std::unique_ptr<JobOperations> open_job_operations() override {
    return make_postgres_job_operations(database_.options());
  }

  std::unique_ptr<Purger> open_purger() override {
    return make_postgres_purger(database_.options());
  }

  std::int64_t stored_failures() override {
    return std::stoll(database_.open_session()->run("SELECT count(*)::text FROM " + tables() +
                                                    "outbox_job_failures"));
  }

  std::vector<AuditedJobChange> audit() override {
    const auto table = tables();
    std::vector<AuditedJobChange> changes;
    for (const auto& row : database_.open_session()->rows("SELECT action, who, reason FROM " +
                                                          table + "postrider_audit ORDER BY id")) {
      const auto first = row.find('|');
      const auto second = row.find('|', first + 1);
      changes.push_back({row.substr(0, first), row.substr(first + 1, second - first - 1),
                         row.substr(second + 1)});
    }
    return changes;
  }

 private:
  [[nodiscard]] std::string tables() const {
    const auto& names = database_.options().names;
    return (names.schema.empty() ? "" : names.schema + ".") + names.prefix;
  }

  PostgresDatabase database_;
};

JobOperationsCase with_options(const char* name, const PostgresOptions& options) {
  return {name, [options]() -> std::unique_ptr<JobOperationsHarness> {
            if (lacks_postgres()) return nullptr;
            return std::make_unique<PostgresJobOperationsHarness>(options);
          }};
}

PostgresOptions named() {
  PostgresOptions options;
  options.names = {"shop", "app_"};
  options.partitions = 4;
  return options;
}

INSTANTIATE_TEST_SUITE_P(Postgres, JobOperationsConformance,
                         ::testing::Values(with_options("defaults", {}),
                                           with_options("schema_and_prefix", named())),
                         job_operations_case_name);

}  // namespace
}  // namespace postrider::testing
