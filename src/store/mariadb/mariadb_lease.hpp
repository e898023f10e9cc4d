#pragma once
/// \file
/// Who owns which partitions. The caller holds the write transaction.

#include <cstdint>
#include <optional>
#include <span>

#include <postrider/store.hpp>

#include "store/mariadb/mariadb_connection.hpp"

namespace postrider::store::mariadb {

/// `session_lock` is the key of the lock that this session holds, if it holds one.
[[nodiscard]] Result<LeaseGrant> take_leases(MariadbConnection& connection,
                                             const LeaseRequest& request,
                                             std::optional<std::int32_t> session_lock);

[[nodiscard]] Result<void> release_leases(MariadbConnection& connection,
                                          std::span<const Lease> leases);

}  // namespace postrider::store::mariadb
