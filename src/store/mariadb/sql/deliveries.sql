-- Deliveries: what is still open, and what is dead.
--
-- Statements that return a delivery all give the columns of `read_delivery_columns`, in its order.

-- name: deliveries_insert
-- Stores open deliveries, a tuple each. Repeatable: a row with this id, or one for the same event,
-- route and generation, is left alone. Unique indexes.
INSERT INTO {prefix}outbox_deliveries (
  id, event_seq, event_id, route, ordering_key, status, attempts, retry_delays, timeout_ms,
  on_failed, dispatch_id, available_at, dispatched_at, delivery_timeout_at, finished_at,
  failure_code, failure_detail, ambiguous)
VALUES (
  :id, :event_seq, :event_id, :route, :ordering_key, :status, :attempts, :retry_delays,
  :timeout_ms, :on_failed, :dispatch_id, :available_at, :dispatched_at, :delivery_timeout_at,
  :finished_at, :failure_code, :failure_detail, :ambiguous)
ON DUPLICATE KEY UPDATE id = {prefix}outbox_deliveries.id;

-- name: deliveries_insert_jobs
-- Stores jobs, a tuple each. Left alone is a row that an earlier try has stored, a job that this
-- event has made in this queue, and one whose unique key an open job has. Unique indexes.
INSERT INTO {prefix}outbox_deliveries (
  id, event_seq, event_id, kind, route, status, retry_delays, timeout_ms, on_failed, available_at,
  finished_at, failure_code, failure_detail, job, queue, transport, priority, serial_key,
  serial_limit, unique_key, on_worker_death, max_deaths, timeout_limit_ms)
VALUES (
  :id, :event_seq, :event_id, 'job', :route, :status, :retry_delays, :timeout_ms, :on_failed,
  :available_at, :finished_at, :failure_code, :failure_detail, :job, :queue, :transport, :priority,
  :serial_key, :serial_limit, :unique_key, :on_worker_death, :max_deaths, :timeout_limit_ms)
ON DUPLICATE KEY UPDATE id = {prefix}outbox_deliveries.id;

-- name: deliveries_get
-- Which of these rows are there, as MariaDB does not tell which ones an INSERT has left alone. Primary
-- key.
SELECT d.id
FROM {prefix}outbox_deliveries AS d
WHERE d.id IN :ids;

-- name: deliveries_update
-- Changes the row that the relay believes to see, and no other (compare-and-set). Pending again, a
-- row forgets its dispatch; a final one keeps its time as history. Primary key.
UPDATE {prefix}outbox_deliveries
SET status = :status,
  attempts = :attempts,
  dispatch_id = :dispatch_id,
  available_at = coalesce(:available_at, available_at),
  dispatched_at = CASE
    WHEN :status = 'pending' THEN NULL
    ELSE coalesce(:dispatched_at, dispatched_at)
  END,
  delivery_timeout_at = :dispatched_at + INTERVAL timeout_ms * 1000 MICROSECOND,
  finished_at = :finished_at,
  failure_code = :failure_code,
  failure_detail = :failure_detail,
  ambiguous = :ambiguous
WHERE id = :id
  AND status = :expected_status
  AND dispatch_id <=> :expected_dispatch_id;

-- name: deliveries_release
-- Takes away the row that held an event, in the transaction that routes it. Primary key.
DELETE FROM {prefix}outbox_deliveries
WHERE id = :id
  AND status = 'held';

-- name: deliveries_due
-- What may be attempted now, in the order of events, and what is overdue; no payload, only its
-- length. A pending row is due when its time has come and nothing before it in its key holds it
-- back: an earlier one that is dispatched, dead, not due yet, or of a partition that is not asked
-- for. Of a key so an unbroken run comes.
-- Index: outbox_deliveries_status_idx; for what stands before, outbox_deliveries_heads_idx.
-- Only here: works on sets; SQLite goes row by row.
SELECT
  d.id, d.event_seq, d.event_id, d.route, d.ordering_key, d.status, d.attempts,
  d.retry_delays, d.timeout_ms, d.on_failed, d.dispatch_id, d.available_at, d.dispatched_at,
  d.delivery_timeout_at, d.finished_at, d.failure_code, d.failure_detail, d.ambiguous,
  d.generation,
  coalesce(octet_length(e.payload), octet_length(e.payload_bytes), 0) AS length
FROM {prefix}outbox_deliveries AS d
  INNER JOIN {prefix}outbox_events AS e ON e.seq = d.event_seq
WHERE d.current = 1
  AND d.kind = 'publish'
  AND d.route IN :routes
  AND d.slot MOD :partition_count IN :partitions
  AND (
    (d.status = 'dispatched' AND d.delivery_timeout_at <= :now)
    OR (d.status = 'pending'
      AND d.available_at <= :now
      AND (
    d.ordering_key IS NULL
    OR NOT EXISTS (
      SELECT 1
      FROM {prefix}outbox_deliveries AS b
      WHERE b.ordering_key = d.ordering_key
        AND b.route = d.route
        AND b.event_seq < d.event_seq
        AND b.current = 1
        AND b.kind = 'publish'
        AND (
          b.status = 'dispatched'
          OR (b.status = 'failed' AND b.on_failed = 'halt')
          OR (b.status = 'pending'
            AND (b.available_at > :now OR b.slot MOD :partition_count NOT IN :partitions)))))))
ORDER BY d.event_seq, d.route
LIMIT :limit;

-- name: deliveries_next_due
-- When the next delivery becomes due: pending ones that wait for their time alone, and deadlines of
-- dispatched ones. Indexes as in deliveries_due.
-- Only here: works on sets; SQLite goes row by row.
SELECT min(IF(d.status = 'pending', d.available_at, d.delivery_timeout_at))
FROM {prefix}outbox_deliveries AS d
WHERE d.current = 1
  AND d.kind = 'publish'
  AND d.route IN :routes
  AND d.slot MOD :partition_count IN :partitions
  AND (
    (d.status = 'dispatched' AND d.delivery_timeout_at > :now)
    OR (d.status = 'pending'
      AND d.available_at > :now
      AND (
    d.ordering_key IS NULL
    OR NOT EXISTS (
      SELECT 1
      FROM {prefix}outbox_deliveries AS b
      WHERE b.ordering_key = d.ordering_key
        AND b.route = d.route
        AND b.event_seq < d.event_seq
        AND b.current = 1
        AND b.kind = 'publish'
        AND (
          b.status = 'dispatched'
          OR (b.status = 'failed' AND b.on_failed = 'halt')
          OR (b.status = 'pending'
            AND (b.available_at > :now OR b.slot MOD :partition_count NOT IN :partitions)))))));

-- name: deliveries_count
-- For `status`, by route. Failures of which a person made a next generation count no more as dead,
-- but their attempts were made. Reads the table once.
SELECT d.route,
  sum(d.status = 'held'),
  sum(d.status = 'pending' AND d.available_at <= :now),
  sum(d.status = 'pending' AND d.available_at > :now),
  sum(d.status = 'dispatched'),
  sum(d.status = 'dispatched' AND d.delivery_timeout_at <= :now),
  sum(d.status = 'completed'),
  sum(d.status = 'failed' AND d.current <=> 1),
  sum(d.status = 'discarded'),
  sum(d.status = 'cancelled'),
  sum(d.attempts),
  min(CASE WHEN d.status = 'pending' AND d.available_at <= :now THEN d.available_at END),
  min(CASE WHEN d.status = 'dispatched' THEN d.dispatched_at END)
FROM {prefix}outbox_deliveries AS d
GROUP BY d.route
ORDER BY d.route;

-- name: deliveries_dead
-- Dead letters behind a place that meet every condition given, oldest first. Index:
-- outbox_deliveries_status_idx, from that place on.
SELECT d.id, d.event_seq, d.event_id, d.route, d.ordering_key, d.status, d.attempts,
  d.retry_delays, d.timeout_ms, d.on_failed, d.dispatch_id, d.available_at, d.dispatched_at,
  d.delivery_timeout_at, d.finished_at, d.failure_code, d.failure_detail, d.ambiguous,
  d.generation, e.type, e.aggregate_type, e.aggregate_id
FROM {prefix}outbox_deliveries AS d
  INNER JOIN {prefix}outbox_events AS e ON e.seq = d.event_seq
WHERE d.status = 'failed'
  AND d.current = 1
  AND d.event_seq >= :after_seq
  AND (d.event_seq > :after_seq OR d.route > :after_route)
  AND (:all_ids OR d.id IN :ids)
  AND (:route IS NULL OR d.route = :route)
  AND (:event_type IS NULL OR e.type = :event_type)
  AND (:failure_code IS NULL OR d.failure_code = :failure_code)
  AND (:ambiguous IS NULL OR d.ambiguous = :ambiguous)
ORDER BY d.event_seq, d.route
LIMIT :limit;

-- name: deliveries_supersede
-- Makes a dead letter history, before its next generation is stored; a job whose unique key an open
-- one has stays. Primary key, outbox_jobs_unique_key.
-- Only here: row by row; PostgreSQL works on sets.
UPDATE {prefix}outbox_deliveries AS d
SET d.current = NULL
WHERE d.id = :id
  AND d.status = 'failed'
  AND d.current = 1
  AND NOT EXISTS (
    SELECT 1
    FROM {prefix}outbox_deliveries AS o
    WHERE o.job = d.job
      AND o.open_unique_key = d.unique_key);

-- name: deliveries_insert_generation
-- The next generation of a superseded row: the same event, route, key and policy, due at once; a job
-- has its checkpoint, too. Primary key.
-- Only here: row by row; PostgreSQL works on sets.
INSERT INTO {prefix}outbox_deliveries (
  id, event_seq, event_id, kind, route, ordering_key, status, retry_delays, timeout_ms, on_failed,
  available_at, generation, job, queue, transport, priority, serial_key, serial_limit, unique_key,
  on_worker_death, max_deaths, timeout_limit_ms, checkpoint)
SELECT :new_id, d.event_seq, d.event_id, d.kind, d.route, d.ordering_key, 'pending',
  d.retry_delays, d.timeout_ms, d.on_failed, :now, d.generation + 1, d.job, d.queue, d.transport,
  d.priority, d.serial_key, d.serial_limit, d.unique_key, d.on_worker_death, d.max_deaths,
  d.timeout_limit_ms, d.checkpoint
FROM {prefix}outbox_deliveries AS d
WHERE d.id = :id;

-- name: deliveries_discard
-- Gives a dead letter up. Primary key.
UPDATE {prefix}outbox_deliveries
SET status = 'discarded',
  finished_at = :now
WHERE id = :id
  AND status = 'failed'
  AND current = 1;

-- name: deliveries_delete
-- All generations of events that go. Unique index on (event_seq, route, generation).
-- Only here: PostgreSQL does all of a slice in one statement.
DELETE d
FROM {prefix}outbox_deliveries AS d FORCE INDEX ({prefix}outbox_deliveries_generation_key)
WHERE d.event_seq IN :seqs;

-- name: deliveries_find
-- Where a delivery stands in the order of the list. Primary key.
SELECT d.event_seq, d.route, d.generation
FROM {prefix}outbox_deliveries AS d
WHERE d.id = :id;

-- name: deliveries_bound
-- The last event whose deliveries a search for people looks at, :examine rows behind the events up
-- to :last (:after_route and :after_generation as in deliveries_list), and the last of its
-- deliveries in the order of the list. Unique index on (event_seq, route, generation).
SELECT d.id, d.event_seq
FROM {prefix}outbox_deliveries AS d
WHERE d.event_seq = (
  SELECT b.event_seq
  FROM {prefix}outbox_deliveries AS b
  WHERE b.event_seq <= :last
    AND (
      :after_route IS NULL
      OR (b.event_seq, b.route, b.generation) < (:last, :after_route, :after_generation))
  ORDER BY b.event_seq DESC, b.route DESC, b.generation DESC
  LIMIT 1 OFFSET :examine)
ORDER BY d.route, d.generation
LIMIT 1;

-- name: deliveries_list
-- For people: deliveries of the events from :first to :last that meet every condition given, in
-- falling order. :after_route and :after_generation leave out what stands before them in the event
-- :last. Unique index on (event_seq, route, generation), or outbox_deliveries_status_idx.
SELECT d.id, d.event_seq, d.event_id, d.route, d.ordering_key, d.status, d.attempts,
  d.retry_delays, d.timeout_ms, d.on_failed, d.dispatch_id, d.available_at, d.dispatched_at,
  d.delivery_timeout_at, d.finished_at, d.failure_code, d.failure_detail, d.ambiguous,
  d.generation, d.current, e.type, e.aggregate_type, e.aggregate_id
FROM {prefix}outbox_deliveries AS d
  INNER JOIN {prefix}outbox_events AS e ON e.seq = d.event_seq
WHERE d.event_seq >= :first
  AND d.event_seq <= :last
  AND (:id IS NULL OR d.id = :id)
  AND (:status IS NULL OR d.status = :status)
  AND (
    :after_route IS NULL
    OR (d.event_seq, d.route, d.generation) < (:last, :after_route, :after_generation))
  AND (:route IS NULL OR d.route = :route)
  AND (
    :aggregate_type IS NULL
    OR (e.aggregate_type = :aggregate_type AND e.aggregate_id = :aggregate_id))
  AND (:due_by IS NULL OR (d.status = 'pending' AND d.available_at <= :due_by))
  AND (:history OR d.current = 1)
ORDER BY d.event_seq DESC, d.route DESC, d.generation DESC
LIMIT :limit;
