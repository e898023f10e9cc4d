// PostgreSQL as a store, against the suite that defines one.

#include <postrider/testing/store_conformance.hpp>

#include "backends/postgres_database.hpp"

namespace postrider::testing {
namespace {

class PostgresStoreHarness final : public StoreHarness {
 public:
  explicit PostgresStoreHarness(PostgresOptions options) : database_(std::move(options)) {}

  std::unique_ptr<Store> open_store() override { return database_.open_store(); }
  std::unique_ptr<Operations> open_operations() override {
    return make_postgres_operations(database_.options());
  }
  std::unique_ptr<Purger> open_purger() override {
    return make_postgres_purger(database_.options());
  }
  std::unique_ptr<Migrator> open_migrator() override {
    return make_postgres_migrator(database_.options());
  }

  bool plant_malformed_event() override {
    database_.open_session()->run("INSERT INTO " + table("outbox_events") +
                                  R"( (type, payload, headers) VALUES ('x', '{}', '{"a": []}'))");
    return true;
  }

  std::shared_ptr<void> lock_database() override {
    std::shared_ptr<PostgresSession> session = database_.open_session();
    session->run("BEGIN");
    for (const auto* name : {"outbox_partitions", "outbox_events", "outbox_deliveries"}) {
      session->run("LOCK TABLE " + table(name) + " IN EXCLUSIVE MODE");
    }
    return session;
  }

  bool plant_receipt(milliseconds age) override {
    database_.open_session()->run(
        "INSERT INTO " + table("inbox_receipts") +
        " (consumer, source, message_id, content_hash, received_at) VALUES ('billing', 'orders', "
        "gen_random_uuid()::text, sha256('x'), clock_timestamp() - interval '" +
        std::to_string(age.count()) + " ms')");
    return true;
  }

  bool lose_connections() override {
    database_.end_sessions();
    return true;
  }

  std::optional<std::vector<AuditedChange>> audit() override {
    std::vector<AuditedChange> changes;
    for (const auto& row : database_.open_session()->rows(
             "SELECT action, who, reason FROM " + table("postrider_audit") + " ORDER BY id")) {
      const auto first = row.find('|');
      const auto second = row.find('|', first + 1);
      changes.push_back({row.substr(0, first),
                         {row.substr(first + 1, second - first - 1), row.substr(second + 1)}});
    }
    return changes;
  }

 private:
  [[nodiscard]] std::string table(const std::string& name) const {
    const auto& names = database_.options().names;
    return (names.schema.empty() ? "" : names.schema + ".") + names.prefix + name;
  }

  PostgresDatabase database_;
};

StoreCase with_options(const char* name, const PostgresOptions& options) {
  return {name, [options]() -> std::unique_ptr<StoreHarness> {
            if (lacks_postgres()) return nullptr;
            return std::make_unique<PostgresStoreHarness>(options);
          }};
}

PostgresOptions named() {
  PostgresOptions options;
  options.names = {"shop", "app_"};
  options.partitions = 4;
  return options;
}

INSTANTIATE_TEST_SUITE_P(Postgres, StoreConformance,
                         ::testing::Values(with_options("defaults", {}),
                                           with_options("schema_and_prefix", named())),
                         case_name);

}  // namespace
}  // namespace postrider::testing
