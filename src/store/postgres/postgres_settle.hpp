#pragma once
/// \file
/// `Store::settle`: one fenced transaction in one round trip.
///
///   BEGIN · limits · fence · insert deliveries · look which are there · mark events routed ·
///   update deliveries · release held ones · stop routes · store the mark · COMMIT
///
/// What a request does not need is left out, and everything is sent before the first answer is
/// read. The fence ends the transaction inside the server when a lease is lost, so no answer has to
/// be waited for. Only a failure costs a second round trip, for the rollback.

#include <postrider/store.hpp>

#include "store/postgres/postgres_connection.hpp"

namespace postrider::store::postgres {

[[nodiscard]] Result<SettleResult> apply_settle(PostgresConnection& connection,
                                                const SettleRequest& request, Deadline deadline);

}  // namespace postrider::store::postgres
