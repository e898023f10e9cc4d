// MariaDB as a store, against the suite that defines one.

#include <postrider/testing/store_conformance.hpp>

#include "backends/mariadb_database.hpp"

namespace postrider::testing {
namespace {

class MariadbStoreHarness final : public StoreHarness {
 public:
  explicit MariadbStoreHarness(MariadbOptions options) : database_(std::move(options)) {}

  std::unique_ptr<Store> open_store() override { return database_.open_store(); }
  std::unique_ptr<Operations> open_operations() override {
    return make_mariadb_operations(database_.options());
  }
  std::unique_ptr<Purger> open_purger() override {
    return make_mariadb_purger(database_.options());
  }
  std::unique_ptr<Migrator> open_migrator() override {
    return make_mariadb_migrator(database_.options());
  }

  bool plant_malformed_event() override {
    database_.open_session()->run("INSERT INTO " + database_.table("outbox_events") +
                                  R"( (type, payload, headers) VALUES ('x', '{}', '{"a": []}'))");
    return true;
  }

  std::shared_ptr<void> lock_database() override {
    std::shared_ptr<MariadbSession> session = database_.open_session();
    session->run("LOCK TABLES " + database_.table("outbox_partitions") + " READ, " +
                 database_.table("outbox_events") + " READ, " +
                 database_.table("outbox_deliveries") + " READ");
    return session;
  }

  bool plant_receipt(milliseconds age) override {
    database_.open_session()->run(
        "INSERT INTO " + database_.table("inbox_receipts") +
        " (consumer, source, message_id, content_hash, received_at) VALUES ('billing', 'orders', "
        "uuid(), repeat('x', 32), utc_timestamp(6) - INTERVAL " +
        std::to_string(age.count()) + " * 1000 MICROSECOND)");
    return true;
  }

  bool lose_connections() override {
    database_.end_sessions();
    return true;
  }

  std::optional<std::vector<AuditedChange>> audit() override {
    std::vector<AuditedChange> changes;
    for (const auto& row :
         database_.open_session()->rows("SELECT action, who, reason FROM " +
                                        database_.table("postrider_audit") + " ORDER BY id")) {
      const auto first = row.find('|');
      const auto second = row.find('|', first + 1);
      changes.push_back({row.substr(0, first),
                         {row.substr(first + 1, second - first - 1), row.substr(second + 1)}});
    }
    return changes;
  }

 private:
  MariadbDatabase database_;
};

StoreCase on_mariadb(const char* name, const MariadbOptions& options) {
  return {name, [options]() -> std::unique_ptr<StoreHarness> {
            if (lacks_mariadb()) return nullptr;
            return std::make_unique<MariadbStoreHarness>(options);
          }};
}

MariadbOptions prefixed() {
  MariadbOptions options;
  options.names.prefix = "app_";
  options.partitions = 4;
  return options;
}

INSTANTIATE_TEST_SUITE_P(Mariadb, StoreConformance,
                         ::testing::Values(on_mariadb("defaults", {}),
                                           on_mariadb("prefixed", prefixed())),
                         case_name);

}  // namespace
}  // namespace postrider::testing
