// Worlds that need no server.
#include "backends/sqlite_database.hpp"
#include "scenarios/world.hpp"

namespace postrider::scenarios {

std::vector<World> all_worlds() {
  const auto one_partition = [] { return memory_store(1); };
  const auto many_partitions = [] { return memory_store(64); };
  return {
      {"memory_to_memory", one_partition, memory_destination},
      {"memory_with_64_partitions_to_memory", many_partitions, memory_destination},
      {"memory_to_file", one_partition, file_destination},
      {"sqlite_to_memory", testing::make_sqlite_harness, memory_destination},
      {"sqlite_to_file", testing::make_sqlite_harness, file_destination},
  };
}

}  // namespace postrider::scenarios
