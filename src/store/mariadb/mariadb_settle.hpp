#pragma once
/// \file
/// One settle: everything in it, or nothing. The caller holds the write transaction.

#include <postrider/store.hpp>

#include "store/mariadb/mariadb_connection.hpp"

namespace postrider::store::mariadb {

/// Locks the partition rows first, compares the tokens there, and then reads the clock.
[[nodiscard]] Result<SettleResult> apply_settle(MariadbConnection& connection,
                                                const SettleRequest& request);

}  // namespace postrider::store::mariadb
