// Worlds with a real MariaDB.
#include "backends/mariadb_database.hpp"
#include "scenarios/world.hpp"

namespace postrider::scenarios {
namespace {

class MariadbHarness final : public testing::StoreHarness {
 public:
  std::unique_ptr<Store> open_store() override { return database_.open_store(); }
  std::unique_ptr<Operations> open_operations() override {
    return make_mariadb_operations(database_.options());
  }
  std::unique_ptr<Purger> open_purger() override {
    return make_mariadb_purger(database_.options());
  }
  std::unique_ptr<Migrator> open_migrator() override { return nullptr; }

 private:
  testing::MariadbDatabase database_;
};

}  // namespace

std::vector<World> all_worlds() {
  const auto on_mariadb = [] { return std::make_unique<MariadbHarness>(); };
  const auto has_mariadb = [] { return !testing::lacks_mariadb(); };
  return {
      {"mariadb_to_memory", on_mariadb, memory_destination, has_mariadb},
      {"mariadb_to_file", on_mariadb, file_destination, has_mariadb},
  };
}

}  // namespace postrider::scenarios
