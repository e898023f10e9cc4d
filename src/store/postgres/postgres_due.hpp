#pragma once
/// \file
/// Reading of stored deliveries: `Store::due` and `Store::held`. One round trip each, and one more
/// for the heads of held events when anything blocks.

#include <postrider/store.hpp>

#include "store/postgres/postgres_connection.hpp"

namespace postrider::store::postgres {

[[nodiscard]] Result<DueBatch> read_due(PostgresConnection& connection, const DueRequest& request,
                                        Deadline deadline);

[[nodiscard]] Result<HeldBatch> read_held(PostgresConnection& connection,
                                          const HeldRequest& request, Deadline deadline);

}  // namespace postrider::store::postgres
