// Worlds with a real PostgreSQL or a real RabbitMQ.
#include "backends/postgres_database.hpp"
#include "scenarios/world.hpp"
#include "servers/need_rabbitmq.hpp"

namespace postrider::scenarios {
namespace {

bool has_postgres() {
  return !testing::lacks_postgres();
}

bool has_rabbitmq() {
  testing::need_rabbitmq();
  return !::testing::Test::IsSkipped() && !::testing::Test::HasFailure();
}

}  // namespace

std::vector<World> all_worlds() {
  return {
      {"postgres_to_memory", postgres_store, memory_destination, has_postgres},
      {"memory_to_rabbitmq", [] { return memory_store(1); }, rabbitmq_destination, has_rabbitmq},
      {"postgres_to_rabbitmq", postgres_store, rabbitmq_destination,
       [] { return has_postgres() && has_rabbitmq(); }},
  };
}

}  // namespace postrider::scenarios
