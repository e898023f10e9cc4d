// What people may do with jobs on SQLite, against the suite.

#include <sstream>

#include "backends/sqlite_database.hpp"
#include "conformance/job_operations.hpp"

namespace postrider::testing {
namespace {

class SqliteJobOperationsHarness final : public JobOperationsHarness {
 public:
  explicit SqliteJobOperationsHarness(const SchemaNames& names)
      : database_(names), prefix_(names.prefix) {}

  std::unique_ptr<Store> open_store() override { return database_.store(); }
  std::unique_ptr<JobStore> open_job_store() override {
    return make_sqlite_job_store(database_.options());
  }
  std::unique_ptr<Operations> open_operations() override {
    return make_sqlite_operations(database_.options());
  }
  std::unique_ptr<JobOperations> open_job_operations() override {
    return make_sqlite_job_operations(database_.options());
  }

  std::unique_ptr<Purger> open_purger() override { return make_sqlite_purger(database_.options()); }

  std::int64_t stored_failures() override {
    RawConnection raw(database_.path());
    return std::stoll(raw.value("SELECT count(*) FROM " + prefix_ + "outbox_job_failures"));
  }

  std::vector<AuditedJobChange> audit() override {
    RawConnection raw(database_.path());
    std::istringstream rows(raw.lines("SELECT action || '|' || who || '|' || reason FROM " +
                                      prefix_ + "postrider_audit ORDER BY rowid"));
    std::vector<AuditedJobChange> changes;
    AuditedJobChange change;
    while (std::getline(rows, change.action, '|') && std::getline(rows, change.who, '|') &&
           std::getline(rows, change.reason)) {
      changes.push_back(change);
    }
    return changes;
  }

 private:
  SqliteDatabase database_;
  std::string prefix_;
};

JobOperationsCase with_names(const char* name, const SchemaNames& names) {
  return {name, [names] { return std::make_unique<SqliteJobOperationsHarness>(names); }};
}

INSTANTIATE_TEST_SUITE_P(Sqlite, JobOperationsConformance,
                         ::testing::Values(with_names("wal", {}),
                                           with_names("prefixed", {"", "app_"})),
                         job_operations_case_name);

}  // namespace
}  // namespace postrider::testing
