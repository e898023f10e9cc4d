#include "backends/postgres_database.hpp"
#include "scenarios/world.hpp"

namespace postrider::scenarios {
namespace {

class PostgresHarness final : public testing::StoreHarness {
 public:
  PostgresHarness() { database_.migrate(); }
  std::unique_ptr<Store> open_store() override { return database_.open_store(); }
  std::unique_ptr<Operations> open_operations() override {
    return make_postgres_operations(database_.options());
  }
  std::unique_ptr<Purger> open_purger() override {
    return make_postgres_purger(database_.options());
  }
  std::unique_ptr<Migrator> open_migrator() override { return nullptr; }

 private:
  testing::PostgresDatabase database_;
};

}  // namespace

std::unique_ptr<testing::StoreHarness> postgres_store() {
  return std::make_unique<PostgresHarness>();
}

}  // namespace postrider::scenarios
