#pragma once
/// \file
/// Ends of attempts: `JobStore::record`.
///
/// One statement changes what is still running. What is left is looked at in a second transaction,
/// as the first one's snapshot may be older than the change that was in its way; this costs a round
/// trip, and only callers that come too late or repeat themselves pay for it. Failures and events
/// are written before the commit, for the ends that were applied: three round trips more, and ends
/// that bring neither pay nothing.

#include <vector>

#include <postrider/ids.hpp>
#include <postrider/job_store_values.hpp>

#include "store/postgres/postgres_connection.hpp"

namespace postrider::store::postgres {

[[nodiscard]] Result<std::vector<RecordAnswer>> record_ends(PostgresConnection& connection,
                                                            IdGenerator& ids,
                                                            const RecordRequest& request,
                                                            Deadline deadline);

}  // namespace postrider::store::postgres
