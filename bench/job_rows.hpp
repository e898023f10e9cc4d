#pragma once
/// \file
/// Rows of jobs by plain SQL, as a relay would have made them.

namespace postrider::bench {

inline constexpr const char* job_queue = "bench";
inline constexpr const char* job_name = "work";

/// Makes one due job for each row of `event` (seq, id, slot): to be put behind `WITH event AS (…)`.
inline constexpr const char* insert_jobs =
    "INSERT INTO outbox_deliveries (id, event_seq, event_id, slot, route, status, retry_delays, "
    "timeout_ms, on_failed, available_at, kind, job, queue, transport, priority, on_worker_death, "
    "max_deaths, timeout_limit_ms) "
    "SELECT outbox_uuidv7(), seq, id, slot, 'bench', 'pending', '[60000]', 600000, 'skip', now(), "
    "'job', 'work', 'bench', 'database', 0, 'fail', 2, 86400000 FROM event";

}  // namespace postrider::bench
