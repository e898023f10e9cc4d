#pragma once
/// \file
/// One settle: everything in it, or nothing. The caller holds the write transaction.

#include <postrider/store.hpp>

#include "store/sqlite/sqlite_connection.hpp"

namespace postrider::store::sqlite {

[[nodiscard]] Result<SettleResult> apply_settle(SqliteConnection& connection,
                                                const SettleRequest& request, Timestamp now);

}  // namespace postrider::store::sqlite
