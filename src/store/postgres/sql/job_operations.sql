-- Jobs as people see and change them.
--
-- Statements that return a job give its columns in the order of `read_job_detail`; the first of them are
-- those of a delivery. Payloads and checkpoints are never read.

-- name: jobs_count
-- For `status`, by queue and job. Failures of which a person made a next generation count no more
-- as dead, but their attempts were made. A dispatch counts as a death on its row until its end is
-- recorded; here it does not. Reads all rows of jobs once.
SELECT
  d.queue,
  d.job,
  count(*) FILTER (WHERE d.status = 'pending' AND d.available_at <= c.now) AS due,
  count(*) FILTER (WHERE d.status = 'pending' AND d.available_at > c.now) AS delayed,
  count(*) FILTER (WHERE d.status = 'dispatched') AS dispatched,
  count(*) FILTER (WHERE d.status = 'dispatched' AND d.delivery_timeout_at <= c.now) AS overdue,
  count(*) FILTER (WHERE d.status = 'completed') AS completed,
  count(*) FILTER (WHERE d.status = 'failed' AND d.current) AS failed,
  count(*) FILTER (WHERE d.status = 'discarded') AS discarded,
  count(*) FILTER (WHERE d.status = 'cancelled') AS cancelled,
  sum(d.attempts)::bigint AS retries,
  sum(d.deaths - (d.status = 'dispatched')::integer)::bigint AS deaths,
  sum(d.snoozes)::bigint AS snoozes,
  sum(d.interruptions)::bigint AS interruptions,
  min(d.available_at) FILTER (WHERE d.status = 'pending' AND d.available_at <= c.now) AS oldest_due,
  min(d.dispatched_at) FILTER (WHERE d.status = 'dispatched') AS oldest_dispatched,
  min(c.now) AS now
FROM {schema}{prefix}outbox_deliveries AS d
  CROSS JOIN (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now OFFSET 0) AS c
WHERE d.kind = 'job'
GROUP BY d.queue, d.job
ORDER BY d.queue, d.job;

-- name: queues_list
-- Queues of which something is said. Primary key.
SELECT q.queue, q.paused_at, q.paused_by, q.reason, q.rate_limit, q.rate_period_ms
FROM {schema}{prefix}outbox_queues AS q
WHERE q.paused_at IS NOT NULL
  OR q.rate_limit IS NOT NULL
ORDER BY q.queue;

-- name: jobs_bound
-- The last row that a search for people looks at, $2 rows behind $1. Primary key.
SELECT d.id
FROM {schema}{prefix}outbox_deliveries AS d
WHERE $1::uuid IS NULL
  OR d.id < $1::uuid
ORDER BY d.id DESC
OFFSET $2::bigint
LIMIT 1;

-- name: jobs_list
-- For people: jobs behind $1 down to $2 that meet every condition given (null: any), newest first.
-- $3 queue, $4 job, $5 status, $6 rows. Primary key.
SELECT
  d.id, d.event_seq, d.event_id, d.route, d.ordering_key, d.status, d.attempts, d.retry_delays,
  d.timeout_ms, d.on_failed, d.dispatch_id, d.available_at, d.dispatched_at, d.delivery_timeout_at,
  d.finished_at, d.failure_code, d.failure_detail, d.ambiguous, d.generation,
  d.job, d.queue, d.transport, d.priority::integer, d.serial_key, d.serial_limit::integer,
  d.unique_key, d.on_worker_death, d.max_deaths::integer, d.timeout_limit_ms,
  d.deaths - (d.status = 'dispatched')::integer AS deaths,
  d.snoozes, d.interruptions, d.worker, w.name, w.host, d.cancel_requested_at, d.percent::integer,
  d.note, octet_length(d.checkpoint)::bigint, e.type, e.aggregate_type, e.aggregate_id,
  d.hooks
FROM {schema}{prefix}outbox_deliveries AS d
  INNER JOIN {schema}{prefix}outbox_events AS e ON e.seq = d.event_seq
  LEFT JOIN {schema}{prefix}outbox_workers AS w ON w.id = d.worker
WHERE d.kind = 'job'
  AND ($1::uuid IS NULL OR d.id < $1::uuid)
  AND ($2::uuid IS NULL OR d.id >= $2::uuid)
  AND ($3::text IS NULL OR d.queue = $3::text)
  AND ($4::text IS NULL OR d.job = $4::text)
  AND ($5::text IS NULL OR d.status = $5::text)
ORDER BY d.id DESC
LIMIT $6::bigint;

-- name: jobs_show
-- One job. Primary key.
SELECT
  d.id, d.event_seq, d.event_id, d.route, d.ordering_key, d.status, d.attempts, d.retry_delays,
  d.timeout_ms, d.on_failed, d.dispatch_id, d.available_at, d.dispatched_at, d.delivery_timeout_at,
  d.finished_at, d.failure_code, d.failure_detail, d.ambiguous, d.generation,
  d.job, d.queue, d.transport, d.priority::integer, d.serial_key, d.serial_limit::integer,
  d.unique_key, d.on_worker_death, d.max_deaths::integer, d.timeout_limit_ms,
  d.deaths - (d.status = 'dispatched')::integer AS deaths,
  d.snoozes, d.interruptions, d.worker, w.name, w.host, d.cancel_requested_at, d.percent::integer,
  d.note, octet_length(d.checkpoint)::bigint, e.type, e.aggregate_type, e.aggregate_id,
  d.hooks
FROM {schema}{prefix}outbox_deliveries AS d
  INNER JOIN {schema}{prefix}outbox_events AS e ON e.seq = d.event_seq
  LEFT JOIN {schema}{prefix}outbox_workers AS w ON w.id = d.worker
WHERE d.id = $1::uuid
  AND d.kind = 'job';

-- name: jobs_failures
-- What the history of a job holds, oldest first. Primary key.
SELECT f.dispatch_id, f.attempt, f.failed_at, f.code, f.detail, f.worker
FROM {schema}{prefix}outbox_job_failures AS f
WHERE f.delivery_id = $1::uuid
ORDER BY f.attempt, f.failed_at, f.dispatch_id;

-- name: jobs_show_status
-- What a change of a job met that it did not change. Primary key.
SELECT d.status
FROM {schema}{prefix}outbox_deliveries AS d
WHERE d.id = $1::uuid
  AND d.kind = 'job';

-- name: jobs_find_unique
-- The open job with a unique key. Index: outbox_jobs_unique_key.
SELECT d.id, d.event_id
FROM {schema}{prefix}outbox_deliveries AS d
WHERE d.job = $1::text
  AND d.unique_key = $2::text
  AND d.status IN ('pending', 'dispatched');

-- name: jobs_enqueue_event
-- Marks the event of a job that is enqueued, as no relay is to route it. Unique index on id.
UPDATE {schema}{prefix}outbox_events
SET routed_at = coalesce($1::timestamptz, clock_timestamp())
WHERE id = $2::uuid;

-- name: jobs_enqueue
-- Stores the one delivery of that event; nothing when its unique key is taken. $4 and $5 are the
-- due time, as it is or from now on. Unique index on the event's id.
INSERT INTO {schema}{prefix}outbox_deliveries (
  id, event_seq, event_id, slot, route, status, retry_delays, timeout_ms, on_failed, available_at,
  kind, job, queue, transport, priority, serial_key, serial_limit, unique_key, on_worker_death,
  max_deaths, timeout_limit_ms, hooks)
SELECT
  $2::uuid, e.seq, e.id, e.slot, '@enqueue', 'pending', $6::text, $7::bigint, 'skip',
  coalesce(
    $4::timestamptz,
    coalesce($1::timestamptz, clock_timestamp()) + $5::bigint * interval '1 ms'),
  'job', $8::text, $9::text, 'database', $10::integer, $11::text,
  CASE WHEN $11::text IS NOT NULL THEN $12::integer END, $13::text, $14::text, $15::integer,
  $16::bigint, $17::text
FROM {schema}{prefix}outbox_events AS e
WHERE e.id = $3::uuid
ON CONFLICT DO NOTHING
RETURNING id;

-- name: jobs_cancel
-- Ends a waiting job, or asks for the end of one that runs; nothing when that was asked for before.
-- The condition is judged again on the row as another transaction leaves it, so that of this and an
-- end that is recorded meanwhile exactly one wins. Primary key.
UPDATE {schema}{prefix}outbox_deliveries AS d
SET status = CASE d.status WHEN 'pending' THEN 'cancelled' ELSE d.status END,
  finished_at = CASE d.status WHEN 'pending' THEN c.now END,
  failure_code = CASE d.status WHEN 'pending' THEN 'cancelled' ELSE d.failure_code END,
  failure_detail = CASE d.status WHEN 'pending' THEN '' ELSE d.failure_detail END,
  cancel_requested_at = c.now
FROM (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now) AS c
WHERE d.id = $2::uuid
  AND d.kind = 'job'
  AND (d.status = 'pending' OR (d.status = 'dispatched' AND d.cancel_requested_at IS NULL))
RETURNING d.status;

-- name: jobs_reschedule
-- Moves the due time of a waiting job; $3 and $4 as in jobs_enqueue. Primary key.
UPDATE {schema}{prefix}outbox_deliveries AS d
SET available_at = coalesce(
    $3::timestamptz,
    coalesce($1::timestamptz, clock_timestamp()) + $4::bigint * interval '1 ms')
WHERE d.id = $2::uuid
  AND d.kind = 'job'
  AND d.status = 'pending'
RETURNING d.status;

-- name: queues_pause
-- Lets a queue wait; one that waits already stays as it is. Primary key.
INSERT INTO {schema}{prefix}outbox_queues AS q (queue, paused_at, paused_by, reason)
VALUES ($2::text, coalesce($1::timestamptz, clock_timestamp()), $3::text, $4::text)
ON CONFLICT (queue) DO UPDATE
SET paused_at = excluded.paused_at,
  paused_by = excluded.paused_by,
  reason = excluded.reason
WHERE q.paused_at IS NULL
RETURNING q.queue;

-- name: queues_resume
-- Lets a queue go on, whoever made it wait. Primary key.
UPDATE {schema}{prefix}outbox_queues AS q
SET paused_at = NULL,
  paused_by = NULL,
  reason = ''
WHERE q.queue = $1::text
  AND q.paused_at IS NOT NULL
RETURNING q.queue;

-- name: queues_limit
-- Sets the rate of a queue. A new one begins with a full bucket; a changed one keeps what was left,
-- as far as it fits. Primary key.
INSERT INTO {schema}{prefix}outbox_queues AS q (
  queue, rate_limit, rate_period_ms, tokens, refilled_at)
VALUES (
  $2::text, $3::integer, $4::bigint, $3::integer, coalesce($1::timestamptz, clock_timestamp()))
ON CONFLICT (queue) DO UPDATE
SET rate_limit = excluded.rate_limit,
  rate_period_ms = excluded.rate_period_ms,
  tokens = CASE
    WHEN q.rate_limit IS NULL THEN excluded.tokens
    ELSE least(q.tokens, excluded.tokens)
  END,
  refilled_at = coalesce(q.refilled_at, excluded.refilled_at)
WHERE q.rate_limit IS DISTINCT FROM excluded.rate_limit
  OR q.rate_period_ms IS DISTINCT FROM excluded.rate_period_ms
RETURNING q.queue;

-- name: queues_unlimit
-- Takes the rate of a queue away. Primary key.
UPDATE {schema}{prefix}outbox_queues AS q
SET rate_limit = NULL,
  rate_period_ms = NULL,
  tokens = 0,
  refilled_at = NULL
WHERE q.queue = $1::text
  AND q.rate_limit IS NOT NULL
RETURNING q.queue;

-- name: workers_list
-- For people: starts of workers, newest first, with the time. $2 those that have ended, too; $3
-- rows. Reads the table; for the attempts of each outbox_jobs_worker_idx.
SELECT
  w.id, w.name, w.host, w.pid, w.version, w.queues, w.state, w.started_at, w.last_seen_at,
  (
    SELECT count(*)
    FROM {schema}{prefix}outbox_deliveries AS d
    WHERE d.worker = w.id
      AND d.status = 'dispatched') AS running,
  coalesce($1::timestamptz, clock_timestamp()) AS now
FROM {schema}{prefix}outbox_workers AS w
WHERE $2::boolean
  OR w.state IN ('running', 'quiet', 'stopping')
ORDER BY w.started_at DESC, w.id DESC
LIMIT $3::bigint;
