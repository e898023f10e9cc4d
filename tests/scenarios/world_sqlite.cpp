#include "backends/sqlite_database.hpp"
#include "scenarios/world.hpp"

namespace postrider::scenarios {

std::vector<NamedStore> sqlite_stores() { return {{"sqlite", testing::make_sqlite_harness}}; }

}  // namespace postrider::scenarios
