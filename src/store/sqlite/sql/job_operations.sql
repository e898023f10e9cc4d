-- Jobs as people see and change them.
--
-- Statements that return a job give its columns in the order of `read_job_detail`; the first of them are
-- those of a delivery. Payloads and checkpoints are never read.

-- name: jobs_count
-- For `status`, by queue and job. Failures of which a person made a next generation count no more
-- as dead, but their attempts were made. A dispatch counts as a death on its row until its end is
-- recorded; here it does not. Reads all rows of jobs once.
SELECT d.queue,
  d.job,
  sum(d.status = 'pending' AND d.available_at <= :now),
  sum(d.status = 'pending' AND d.available_at > :now),
  sum(d.status = 'dispatched'),
  sum(d.status = 'dispatched' AND d.delivery_timeout_at <= :now),
  sum(d.status = 'completed'),
  sum(d.status = 'failed' AND d.current = 1),
  sum(d.status = 'discarded'),
  sum(d.status = 'cancelled'),
  sum(d.attempts),
  sum(d.deaths - (d.status = 'dispatched')),
  sum(d.snoozes),
  sum(d.interruptions),
  min(CASE WHEN d.status = 'pending' AND d.available_at <= :now THEN d.available_at END),
  min(CASE WHEN d.status = 'dispatched' THEN d.dispatched_at END)
FROM {prefix}outbox_deliveries AS d
WHERE d.kind = 'job'
GROUP BY d.queue, d.job
ORDER BY d.queue, d.job;

-- name: queues_list
-- Queues of which something is said. Primary key.
SELECT q.queue, q.paused_at, q.paused_by, q.reason, q.rate_limit, q.rate_period_ms
FROM {prefix}outbox_queues AS q
WHERE q.paused_at IS NOT NULL
  OR q.rate_limit IS NOT NULL
ORDER BY q.queue;

-- name: jobs_bound
-- The last row that a search for people looks at, :examine rows behind :after. Primary key.
SELECT d.id
FROM {prefix}outbox_deliveries AS d
WHERE d.id < coalesce(:after, 'g')
ORDER BY d.id DESC
LIMIT 1 OFFSET :examine;

-- name: jobs_list
-- For people: jobs behind :after down to :last that meet every condition given, newest first. No id
-- is above 'g' or below ''. Primary key; CROSS keeps the order of the tables.
SELECT d.id, d.event_seq, d.event_id, d.route, d.ordering_key, d.status, d.attempts,
  d.retry_delays, d.timeout_ms, d.on_failed, d.dispatch_id, d.available_at, d.dispatched_at,
  d.delivery_timeout_at, d.finished_at, d.failure_code, d.failure_detail, d.ambiguous,
  d.generation, d.job, d.queue, d.transport, d.priority, d.serial_key, d.serial_limit,
  d.unique_key, d.on_worker_death, d.max_deaths, d.timeout_limit_ms,
  d.deaths - (d.status = 'dispatched'), d.snoozes, d.interruptions,
  d.worker, w.name, w.host, d.cancel_requested_at, d.percent, d.note, length(d.checkpoint), e.type,
  e.aggregate_type, e.aggregate_id, d.hooks
FROM {prefix}outbox_deliveries AS d
  CROSS JOIN {prefix}outbox_events AS e ON e.seq = d.event_seq
  LEFT JOIN {prefix}outbox_workers AS w ON w.id = d.worker
WHERE d.kind = 'job'
  AND d.id < coalesce(:after, 'g')
  AND d.id >= coalesce(:last, '')
  AND (:queue IS NULL OR d.queue = :queue)
  AND (:job IS NULL OR d.job = :job)
  AND (:status IS NULL OR d.status = :status)
ORDER BY d.id DESC
LIMIT :limit;

-- name: jobs_show
-- One job. Primary key.
SELECT d.id, d.event_seq, d.event_id, d.route, d.ordering_key, d.status, d.attempts,
  d.retry_delays, d.timeout_ms, d.on_failed, d.dispatch_id, d.available_at, d.dispatched_at,
  d.delivery_timeout_at, d.finished_at, d.failure_code, d.failure_detail, d.ambiguous,
  d.generation, d.job, d.queue, d.transport, d.priority, d.serial_key, d.serial_limit,
  d.unique_key, d.on_worker_death, d.max_deaths, d.timeout_limit_ms,
  d.deaths - (d.status = 'dispatched'), d.snoozes, d.interruptions,
  d.worker, w.name, w.host, d.cancel_requested_at, d.percent, d.note, length(d.checkpoint), e.type,
  e.aggregate_type, e.aggregate_id, d.hooks
FROM {prefix}outbox_deliveries AS d
  CROSS JOIN {prefix}outbox_events AS e ON e.seq = d.event_seq
  LEFT JOIN {prefix}outbox_workers AS w ON w.id = d.worker
WHERE d.id = :id
  AND d.kind = 'job';

-- name: jobs_failures
-- What the history of a job holds, oldest first. Primary key.
SELECT f.dispatch_id, f.attempt, f.failed_at, f.code, f.detail, f.worker
FROM {prefix}outbox_job_failures AS f
WHERE f.delivery_id = :id
ORDER BY f.attempt, f.failed_at, f.dispatch_id;

-- name: jobs_show_status
-- What a change of a job met that it did not change. Primary key.
SELECT d.status
FROM {prefix}outbox_deliveries AS d
WHERE d.id = :id
  AND d.kind = 'job';

-- name: jobs_find_unique
-- The open job with a unique key. Index: outbox_jobs_unique.
SELECT d.id, d.event_id
FROM {prefix}outbox_deliveries AS d
WHERE d.job = :job
  AND d.unique_key = :unique_key
  AND d.unique_key IS NOT NULL
  AND d.status IN ('pending', 'dispatched');

-- name: jobs_enqueue_event
-- Marks the event of a job that is enqueued, as no relay is to route it. Unique index on id.
UPDATE {prefix}outbox_events
SET routed_at = :now
WHERE id = :event_id;

-- name: jobs_enqueue
-- Stores the one delivery of that event. Unique index on the event's id.
INSERT INTO {prefix}outbox_deliveries (
  id, event_seq, event_id, route, status, retry_delays, timeout_ms, on_failed, available_at, kind,
  job, queue, transport, priority, serial_key, serial_limit, unique_key, on_worker_death,
  max_deaths, timeout_limit_ms, hooks)
SELECT :id, e.seq, e.id, '@enqueue', 'pending', :retry_delays, :timeout_ms, 'skip', :available_at,
  'job', :job, :queue, 'database', :priority, :serial_key, :serial_limit, :unique_key,
  :on_worker_death, :max_deaths, :timeout_limit_ms, :hooks
FROM {prefix}outbox_events AS e
WHERE e.id = :event_id;

-- name: jobs_cancel
-- Ends a waiting job, or asks for the end of one that runs; nothing when that was asked for before.
-- Of this and an end that is recorded exactly one comes first. Primary key.
UPDATE {prefix}outbox_deliveries
SET status = CASE status WHEN 'pending' THEN 'cancelled' ELSE status END,
  finished_at = CASE status WHEN 'pending' THEN :now END,
  failure_code = CASE status WHEN 'pending' THEN 'cancelled' ELSE failure_code END,
  failure_detail = CASE status WHEN 'pending' THEN '' ELSE failure_detail END,
  cancel_requested_at = :now
WHERE id = :id
  AND kind = 'job'
  AND (status = 'pending' OR (status = 'dispatched' AND cancel_requested_at IS NULL))
RETURNING status;

-- name: jobs_reschedule
-- Moves the due time of a waiting job. Primary key.
UPDATE {prefix}outbox_deliveries
SET available_at = :available_at
WHERE id = :id
  AND kind = 'job'
  AND status = 'pending'
RETURNING status;

-- name: queues_pause
-- Lets a queue wait; one that waits already stays as it is. Primary key.
INSERT INTO {prefix}outbox_queues AS q (queue, paused_at, paused_by, reason)
VALUES (:queue, :now, :paused_by, :reason)
ON CONFLICT (queue) DO UPDATE
SET paused_at = excluded.paused_at,
  paused_by = excluded.paused_by,
  reason = excluded.reason
WHERE q.paused_at IS NULL;

-- name: queues_resume
-- Lets a queue go on, whoever made it wait. Primary key.
UPDATE {prefix}outbox_queues
SET paused_at = NULL,
  paused_by = NULL,
  reason = ''
WHERE queue = :queue
  AND paused_at IS NOT NULL;

-- name: queues_limit
-- Sets the rate of a queue. A new one begins with a full bucket; a changed one keeps what was left,
-- as far as it fits. Primary key.
INSERT INTO {prefix}outbox_queues AS q (queue, rate_limit, rate_period_ms, tokens, refilled_at)
VALUES (:queue, :rate_limit, :rate_period_ms, :rate_limit, :now)
ON CONFLICT (queue) DO UPDATE
SET rate_limit = excluded.rate_limit,
  rate_period_ms = excluded.rate_period_ms,
  tokens = CASE
    WHEN q.rate_limit IS NULL THEN excluded.tokens
    ELSE min(q.tokens, excluded.tokens)
  END,
  refilled_at = coalesce(q.refilled_at, excluded.refilled_at)
WHERE q.rate_limit IS NOT excluded.rate_limit
  OR q.rate_period_ms IS NOT excluded.rate_period_ms;

-- name: queues_unlimit
-- Takes the rate of a queue away. Primary key.
UPDATE {prefix}outbox_queues
SET rate_limit = NULL,
  rate_period_ms = NULL,
  tokens = 0,
  refilled_at = NULL
WHERE queue = :queue
  AND rate_limit IS NOT NULL;

-- name: workers_list
-- For people: starts of workers, newest first. Reads the table; for the attempts of each
-- outbox_jobs_worker.
SELECT w.id, w.name, w.host, w.pid, w.version, w.queues, w.state, w.started_at, w.last_seen_at,
  (
    SELECT count(*)
    FROM {prefix}outbox_deliveries AS d
    WHERE d.worker = w.id
      AND d.worker IS NOT NULL
      AND d.status = 'dispatched') AS running
FROM {prefix}outbox_workers AS w
WHERE :ended
  OR w.state IN ('running', 'quiet', 'stopping')
ORDER BY w.started_at DESC, w.id DESC
LIMIT :limit;
