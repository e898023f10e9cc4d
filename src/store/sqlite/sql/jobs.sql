-- Jobs: deliveries that complete when a worker reports, the workers, and the queues.
--
-- Statements that return a dispatched job all give the columns of `read_dispatched_job`, in its
-- order. A dispatch counts as a death until its end is recorded.

-- name: jobs_next_priority
-- The next less urgent priority that has pending rows in a queue. Index: outbox_jobs_take.
-- Only here: row by row; PostgreSQL works on sets.
SELECT min(d.priority)
FROM {prefix}outbox_deliveries AS d
WHERE d.status = 'pending'
  AND d.transport = 'database'
  AND d.queue = :queue
  AND d.priority > :after;

-- name: jobs_due
-- Due rows of one queue and priority behind a place, in their order. Index: outbox_jobs_take, and
-- none of its entries that are not due. The caller decides from it what is taken.
-- Only here: row by row; PostgreSQL works on sets.
SELECT d.id, d.available_at, d.queue, d.serial_key, d.serial_limit, d.timeout_ms
FROM {prefix}outbox_deliveries AS d
WHERE d.status = 'pending'
  AND d.transport = 'database'
  AND d.queue = :queue
  AND d.priority = :priority
  AND d.available_at <= :now
  AND (d.available_at, d.id) > (:after_time, :after_id)
ORDER BY d.available_at, d.id
LIMIT :limit;

-- name: jobs_next_due
-- When the first delayed row of one queue and priority becomes due. Index: outbox_jobs_take.
-- Only here: row by row; PostgreSQL works on sets.
SELECT min(d.available_at)
FROM {prefix}outbox_deliveries AS d
WHERE d.status = 'pending'
  AND d.transport = 'database'
  AND d.queue = :queue
  AND d.priority = :priority
  AND d.available_at > :now;

-- name: jobs_due_by_route
-- Due rows of one broker route behind a place, in their order. Index: outbox_jobs_hand_out.
-- Only here: row by row; PostgreSQL works on sets.
SELECT d.id, d.available_at, d.queue, d.serial_key, d.serial_limit, d.timeout_ms
FROM {prefix}outbox_deliveries AS d
WHERE d.status = 'pending'
  AND d.transport = 'broker'
  AND d.route = :route
  AND d.available_at <= :now
  AND (d.available_at, d.id) > (:after_time, :after_id)
ORDER BY d.available_at, d.id
LIMIT :limit;

-- name: jobs_next_due_by_route
-- When the first delayed row of one broker route becomes due. Index: outbox_jobs_hand_out.
-- Only here: row by row; PostgreSQL works on sets.
SELECT min(d.available_at)
FROM {prefix}outbox_deliveries AS d
WHERE d.status = 'pending'
  AND d.transport = 'broker'
  AND d.route = :route
  AND d.available_at > :now;

-- name: jobs_serial_first
-- The first open rows of a serial key in the order of their events: none but these may run. Index:
-- outbox_jobs_serial.
-- Only here: row by row; PostgreSQL works on sets.
SELECT d.id
FROM {prefix}outbox_deliveries AS d
WHERE d.serial_key IS NOT NULL
  AND d.status IN ('pending', 'dispatched')
  AND d.queue = :queue
  AND d.serial_key = :serial_key
ORDER BY d.event_seq, d.id
LIMIT :limit;

-- name: jobs_serial_slots
-- Slots of a serial key in which something runs. Covering index: outbox_jobs_serial_slot.
-- Only here: row by row; PostgreSQL works on sets.
SELECT d.serial_slot
FROM {prefix}outbox_deliveries AS d
WHERE d.serial_slot IS NOT NULL
  AND d.queue = :queue
  AND d.serial_key = :serial_key
ORDER BY d.serial_slot;

-- name: jobs_dispatch
-- Begins an attempt of a pending row, for a worker or, with none, for whoever a broker gives it to.
-- What the attempt before has said of its progress goes, its checkpoint stays. Primary key.
-- Only here: row by row; PostgreSQL works on sets.
UPDATE {prefix}outbox_deliveries
SET status = 'dispatched',
  dispatch_id = :dispatch_id,
  dispatched_at = :now,
  delivery_timeout_at = :delivery_timeout_at,
  worker = :worker,
  serial_slot = :serial_slot,
  deaths = deaths + 1,
  result = NULL,
  percent = NULL,
  note = NULL
WHERE id = :id
  AND status = 'pending'
RETURNING id, event_seq, event_id, route, job, queue, attempts, retry_delays, timeout_ms,
  timeout_limit_ms, on_worker_death, max_deaths, deaths, snoozes, interruptions,
  cancel_requested_at, dispatch_id, delivery_timeout_at, worker, checkpoint, hooks;

-- name: jobs_get_dispatched
-- A job while this dispatch of it is current. Primary key.
-- Only here: row by row; PostgreSQL works on sets.
SELECT d.id, d.event_seq, d.event_id, d.route, d.job, d.queue, d.attempts, d.retry_delays,
  d.timeout_ms, d.timeout_limit_ms, d.on_worker_death, d.max_deaths, d.deaths, d.snoozes,
  d.interruptions, d.cancel_requested_at, d.dispatch_id, d.delivery_timeout_at, d.worker,
  d.checkpoint, d.hooks
FROM {prefix}outbox_deliveries AS d
WHERE d.id = :id
  AND d.status = 'dispatched'
  AND d.dispatch_id = :dispatch_id
  AND d.kind = 'job';

-- name: jobs_start
-- Gives a dispatch that a broker has delivered to the first worker that asks. Primary key.
UPDATE {prefix}outbox_deliveries
SET worker = :worker
WHERE id = :id
  AND status = 'dispatched'
  AND dispatch_id = :dispatch_id
  AND worker IS NULL;

-- name: jobs_record
-- Applies the end of an attempt while it is current (compare-and-set). Pending again, a row keeps
-- which dispatch it had and what came of it, so that a repeated report is known. Primary key.
UPDATE {prefix}outbox_deliveries
SET status = :status,
  attempts = :attempts,
  deaths = :deaths,
  snoozes = :snoozes,
  interruptions = :interruptions,
  available_at = coalesce(:available_at, available_at),
  dispatched_at = CASE WHEN :status = 'pending' THEN NULL ELSE dispatched_at END,
  delivery_timeout_at = NULL,
  finished_at = :finished_at,
  failure_code = :failure_code,
  failure_detail = :failure_detail,
  worker = CASE WHEN :status = 'pending' THEN NULL ELSE worker END,
  serial_slot = NULL,
  result = :result
WHERE id = :id
  AND status = 'dispatched'
  AND dispatch_id = :dispatch_id
  AND kind = 'job'
  AND (worker IS NULL OR NOT :unless_started)
  AND (cancel_requested_at IS NULL OR :status <> 'pending');

-- name: jobs_recorded
-- The last dispatch of a job and what was recorded of it. Primary key.
-- Only here: row by row; PostgreSQL works on sets.
SELECT d.dispatch_id, d.result, d.status = 'dispatched' AS running,
  d.cancel_requested_at IS NOT NULL AS cancel_requested
FROM {prefix}outbox_deliveries AS d
WHERE d.id = :id
  AND d.kind = 'job';

-- name: jobs_keep_failures
-- Joins a failure to the history of its job, in the transaction that applies that end. Primary key.
INSERT INTO {prefix}outbox_job_failures (
  delivery_id, dispatch_id, attempt, failed_at, code, detail, worker)
VALUES (:delivery_id, :dispatch_id, :attempt, :now, :code, :detail, :worker);

-- name: jobs_drop_failures
-- Takes the oldest failures out of the history of a job. Primary key.
-- Only here: row by row; PostgreSQL does it with jobs_keep_failures.
DELETE FROM {prefix}outbox_job_failures
WHERE delivery_id = :delivery_id
  AND attempt <= :attempt;

-- name: jobs_attempt
-- What a running attempt may ask, while it is current. Primary key.
SELECT d.dispatched_at, d.delivery_timeout_at, d.timeout_limit_ms, d.cancel_requested_at
FROM {prefix}outbox_deliveries AS d
WHERE d.id = :id
  AND d.status = 'dispatched'
  AND d.dispatch_id = :dispatch_id
  AND d.kind = 'job';

-- name: jobs_touch
-- Writes what a running attempt says of itself, while it is current. Primary key.
UPDATE {prefix}outbox_deliveries
SET delivery_timeout_at = coalesce(:delivery_timeout_at, delivery_timeout_at),
  percent = coalesce(:percent, percent),
  note = coalesce(:note, note),
  checkpoint = coalesce(:checkpoint, checkpoint)
WHERE id = :id
  AND status = 'dispatched'
  AND dispatch_id = :dispatch_id;

-- name: jobs_running
-- The attempts in the hands of a worker. Index: outbox_jobs_worker.
SELECT d.dispatch_id, d.cancel_requested_at
FROM {prefix}outbox_deliveries AS d
WHERE d.status = 'dispatched'
  AND d.worker IS NOT NULL
  AND d.worker = :worker;

-- name: jobs_next_worker
-- The next worker that has attempts in its hands. Index: outbox_jobs_worker.
-- Only here: row by row; PostgreSQL works on sets.
SELECT min(d.worker)
FROM {prefix}outbox_deliveries AS d
WHERE d.status = 'dispatched'
  AND d.worker IS NOT NULL
  AND d.worker > :after;

-- name: jobs_of_worker
-- The attempts that a dead worker leaves behind. Index: outbox_jobs_worker.
-- Only here: row by row; PostgreSQL works on sets.
SELECT d.id, d.event_seq, d.event_id, d.route, d.job, d.queue, d.attempts, d.retry_delays,
  d.timeout_ms, d.timeout_limit_ms, d.on_worker_death, d.max_deaths, d.deaths, d.snoozes,
  d.interruptions, d.cancel_requested_at, d.dispatch_id, d.delivery_timeout_at, d.worker,
  d.checkpoint, d.hooks
FROM {prefix}outbox_deliveries AS d
WHERE d.status = 'dispatched'
  AND d.worker IS NOT NULL
  AND d.worker = :worker
ORDER BY d.rowid
LIMIT :limit;

-- name: jobs_overdue
-- Attempts whose deadline has passed, the oldest first. Index: outbox_jobs_timeout.
-- Only here: row by row; PostgreSQL works on sets.
SELECT d.id, d.event_seq, d.event_id, d.route, d.job, d.queue, d.attempts, d.retry_delays,
  d.timeout_ms, d.timeout_limit_ms, d.on_worker_death, d.max_deaths, d.deaths, d.snoozes,
  d.interruptions, d.cancel_requested_at, d.dispatch_id, d.delivery_timeout_at, d.worker,
  d.checkpoint, d.hooks
FROM {prefix}outbox_deliveries AS d
WHERE d.status = 'dispatched'
  AND d.kind = 'job'
  AND d.delivery_timeout_at <= :now
ORDER BY d.delivery_timeout_at, d.rowid
LIMIT :limit;

-- name: workers_beat
-- Registers a start of a worker, or says that it lives. One that has ended stays what it is.
-- Primary key.
INSERT INTO {prefix}outbox_workers (
  id, name, host, pid, version, queues, state, started_at, last_seen_at)
VALUES (:id, :name, :host, :pid, :version, :queues, :state, :now, :now)
ON CONFLICT (id) DO UPDATE
SET queues = excluded.queues,
  state = excluded.state,
  last_seen_at = excluded.last_seen_at
WHERE state IN ('running', 'quiet', 'stopping');

-- name: workers_state
-- Whether a start of a worker lives. Primary key.
-- Only here: row by row; PostgreSQL works on sets.
SELECT w.state
FROM {prefix}outbox_workers AS w
WHERE w.id = :id;

-- name: workers_declare_dead
-- Ends a start of a worker that was seen to be gone. Primary key.
UPDATE {prefix}outbox_workers
SET state = 'dead'
WHERE id = :id
  AND state IN ('running', 'quiet', 'stopping');

-- name: workers_expire
-- Ends all that said nothing since a moment. Index: outbox_workers_alive.
UPDATE {prefix}outbox_workers
SET state = 'dead'
WHERE state IN ('running', 'quiet', 'stopping')
  AND last_seen_at <= :before
RETURNING id;

-- name: workers_on_host
-- Starts on a host that live. Index: outbox_workers_alive.
SELECT w.id, w.name, w.host, w.pid, w.version, w.queues, w.state
FROM {prefix}outbox_workers AS w
WHERE w.state IN ('running', 'quiet', 'stopping')
  AND w.host = :host
ORDER BY w.last_seen_at, w.id;

-- name: workers_purgeable
-- How many of those that have ended are older and hold no attempt, as far as they are counted: a
-- negative limit counts all. Index: outbox_workers_ended, and for attempts outbox_jobs_worker.
SELECT count(*)
FROM (
  SELECT 1
  FROM {prefix}outbox_workers AS w
  WHERE w.state IN ('stopped', 'dead')
    AND w.last_seen_at <= :before
    AND NOT EXISTS (
      SELECT 1
      FROM {prefix}outbox_deliveries AS d
      WHERE d.status = 'dispatched'
        AND d.worker IS NOT NULL
        AND d.worker = w.id)
  LIMIT :limit);

-- name: workers_purge
-- Deletes the oldest of those that have ended and hold no attempt, whose end depends on how they
-- did. Index: outbox_workers_ended, then the primary key; for attempts outbox_jobs_worker.
DELETE FROM {prefix}outbox_workers
WHERE id IN (
  SELECT w.id
  FROM {prefix}outbox_workers AS w
  WHERE w.state IN ('stopped', 'dead')
    AND w.last_seen_at <= :before
    AND NOT EXISTS (
      SELECT 1
      FROM {prefix}outbox_deliveries AS d
      WHERE d.status = 'dispatched'
        AND d.worker IS NOT NULL
        AND d.worker = w.id)
  ORDER BY w.last_seen_at
  LIMIT :limit);

-- name: queues_get
-- What was said of a queue. Primary key.
-- Only here: row by row; PostgreSQL works on sets.
SELECT q.paused_at, q.rate_limit, q.rate_period_ms, q.tokens, q.refilled_at
FROM {prefix}outbox_queues AS q
WHERE q.queue = :queue;

-- name: queues_store_tokens
-- Keeps what a take has left of a queue's tokens. Primary key.
-- Only here: row by row; PostgreSQL works on sets.
UPDATE {prefix}outbox_queues
SET tokens = :tokens,
  refilled_at = :now
WHERE queue = :queue;
