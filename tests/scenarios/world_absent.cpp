// Stands in for the worlds of backends that are not in this build.
#include "scenarios/world.hpp"

namespace postrider::scenarios {

#ifndef POSTRIDER_WORLD_SQLITE
std::vector<NamedStore> sqlite_stores() { return {}; }
#endif
#ifndef POSTRIDER_WORLD_POSTGRES
std::vector<NamedStore> postgres_stores() { return {}; }
#endif
#ifndef POSTRIDER_WORLD_RABBITMQ
std::vector<NamedDestination> rabbitmq_destinations() { return {}; }
#endif

}  // namespace postrider::scenarios
