// Schedules on SQLite, against the suite.

#include <sstream>

#include <postrider/testing/schedule_store_conformance.hpp>

#include "backends/sqlite_database.hpp"

namespace postrider::testing {
namespace {

class SqliteScheduleHarness final : public ScheduleStoreHarness {
 public:
  explicit SqliteScheduleHarness(const SchemaNames& names)
      : database_(names), prefix_(names.prefix) {}

  std::unique_ptr<ScheduleStore> open_schedule_store() override {
    return make_sqlite_schedule_store(database_.options());
  }
  std::unique_ptr<Operations> open_operations() override {
    return make_sqlite_operations(database_.options());
  }

  std::vector<AuditedScheduleChange> audit() override {
    RawConnection raw(database_.path());
    std::istringstream rows(
        raw.lines("SELECT action || '|' || object || '|' || who || '|' || reason FROM " + prefix_ +
                  "postrider_audit ORDER BY rowid"));
    std::vector<AuditedScheduleChange> changes;
    AuditedScheduleChange change;
    while (std::getline(rows, change.action, '|') && std::getline(rows, change.object, '|') &&
           std::getline(rows, change.who, '|') && std::getline(rows, change.reason)) {
      changes.push_back(change);
    }
    return changes;
  }

  std::optional<std::int64_t> slots() override {
    RawConnection raw(database_.path());
    return std::stoll(raw.value("SELECT count(*) FROM " + prefix_ + "outbox_schedule_slots"));
  }

 private:
  SqliteDatabase database_;
  std::string prefix_;
};

ScheduleStoreCase with_names(const char* name, const SchemaNames& names) {
  return {name, [names] { return std::make_unique<SqliteScheduleHarness>(names); }};
}

INSTANTIATE_TEST_SUITE_P(Sqlite, ScheduleStoreConformance,
                         ::testing::Values(with_names("wal", {}),
                                           with_names("prefixed", {"", "app_"})),
                         schedule_case_name);

}  // namespace
}  // namespace postrider::testing
