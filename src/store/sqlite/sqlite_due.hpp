#pragma once
/// \file
/// Which deliveries may be attempted now. Reads only; the caller holds the read transaction.

#include <postrider/store.hpp>

#include "store/sqlite/sqlite_connection.hpp"

namespace postrider::store::sqlite {

/// Order: by event seq; of every (route, ordering key) an unbroken run from its head on.
/// Cost: one index entry per pending row of the listed routes up to the limit, and one probe per
///   row returned and per key seen.
[[nodiscard]] Result<DueBatch> read_due(SqliteConnection& connection, const DueRequest& request,
                                        Timestamp now);

}  // namespace postrider::store::sqlite
