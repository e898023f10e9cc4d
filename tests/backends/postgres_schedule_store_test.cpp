// Schedules on PostgreSQL, against the suite.

#include <postrider/testing/schedule_store_conformance.hpp>

#include "backends/postgres_database.hpp"

namespace postrider::testing {
namespace {

class PostgresScheduleHarness final : public ScheduleStoreHarness {
 public:
  explicit PostgresScheduleHarness(PostgresOptions options) : database_(std::move(options)) {}

  std::unique_ptr<ScheduleStore> open_schedule_store() override {
    return make_postgres_schedule_store(database_.options());
  }
  std::unique_ptr<Operations> open_operations() override {
    return make_postgres_operations(database_.options());
  }

  std::vector<AuditedScheduleChange> audit() override {
    std::vector<AuditedScheduleChange> changes;
    const auto session = database_.open_session();
    for (const auto& row : session->rows("SELECT action, object, who, reason FROM " +
                                         table("postrider_audit") + " ORDER BY id")) {
      const auto first = row.find('|');
      const auto second = row.find('|', first + 1);
      const auto third = row.find('|', second + 1);
      changes.push_back({row.substr(0, first), row.substr(first + 1, second - first - 1),
                         row.substr(second + 1, third - second - 1), row.substr(third + 1)});
    }
    return changes;
  }

  std::optional<std::int64_t> slots() override {
    return std::stoll(
        database_.open_session()->run("SELECT count(*) FROM " + table("outbox_schedule_slots")));
  }

 private:
  [[nodiscard]] std::string table(const std::string& name) const {
    const auto& names = database_.options().names;
    return (names.schema.empty() ? "" : names.schema + ".") + names.prefix + name;
  }

  PostgresDatabase database_;
};

ScheduleStoreCase with_options(const char* name, const PostgresOptions& options) {
  return {name, [options]() -> std::unique_ptr<ScheduleStoreHarness> {
            if (lacks_postgres()) return nullptr;
            return std::make_unique<PostgresScheduleHarness>(options);
          }};
}

PostgresOptions named() {
  PostgresOptions options;
  options.names = {"shop", "app_"};
  options.partitions = 4;
  return options;
}

INSTANTIATE_TEST_SUITE_P(Postgres, ScheduleStoreConformance,
                         ::testing::Values(with_options("defaults", {}),
                                           with_options("schema_and_prefix", named())),
                         schedule_case_name);

}  // namespace
}  // namespace postrider::testing
