#include "scenarios/world.hpp"

#include <utility>

namespace postrider::scenarios {
namespace {

template <class T>
void append(std::vector<T>& all, std::vector<T> more) {
  for (auto& one : more) all.push_back(std::move(one));
}

World world(const NamedStore& store, const NamedDestination& destination) {
  return {store.name + "_to_" + destination.name, store.make, destination.make};
}

}  // namespace

std::vector<World> all_worlds() {
  std::vector<NamedStore> stores = memory_stores();
  append(stores, sqlite_stores());
  append(stores, postgres_stores());
  std::vector<NamedDestination> others = file_destinations();
  append(others, rabbitmq_destinations());

  std::vector<World> worlds;
  for (const auto& store : stores) worlds.push_back(world(store, memory_destination()));
  for (const auto& destination : others) {
    worlds.push_back(world(stores.front(), destination));
    if (stores.size() > 2) worlds.push_back(world(stores.back(), destination));
  }
  return worlds;
}

}  // namespace postrider::scenarios
