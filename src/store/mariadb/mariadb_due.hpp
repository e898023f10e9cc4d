#pragma once
/// \file
/// Which deliveries may be attempted now, and which events wait for a route. Reads only.

#include <postrider/store.hpp>

#include "store/mariadb/mariadb_connection.hpp"

namespace postrider::store::mariadb {

/// Order: by event seq; of every (route, ordering key) an unbroken run from its head on.
/// Requires: the connection is ready.
[[nodiscard]] Result<DueBatch> read_due(MariadbConnection& connection, const DueRequest& request);

/// Requires: the connection is ready.
[[nodiscard]] Result<HeldBatch> read_held(MariadbConnection& connection,
                                          const HeldRequest& request);

}  // namespace postrider::store::mariadb
