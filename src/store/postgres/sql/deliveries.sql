-- Deliveries: what is still open, and what is dead.
--
-- Statements that return a delivery give its columns in the order of `read_delivery_columns`.

-- name: deliveries_insert
-- Stores open deliveries, before events_set_routed marks their events in the same transaction: so
-- where `only_unrouted` says so, one of an event that was routed before is not stored. Repeatable: a
-- row with this id, or one for the same event, route and generation, is left alone. Primary key of
-- events; unique indexes.
INSERT INTO {schema}{prefix}outbox_deliveries (
  id, event_seq, event_id, slot, route, ordering_key, status, attempts, retry_delays, timeout_ms,
  on_failed, dispatch_id, available_at, dispatched_at, delivery_timeout_at, finished_at,
  failure_code, failure_detail, ambiguous)
SELECT
  n.id, n.event_seq, n.event_id, e.slot, n.route, n.ordering_key, n.status, n.attempts,
  n.retry_delays, n.timeout_ms, n.on_failed, n.dispatch_id,
  c.now + CASE WHEN n.status = 'pending' THEN n.available_in_ms ELSE 0 END * interval '1 ms',
  CASE WHEN n.status = 'dispatched' THEN c.now END,
  CASE WHEN n.status = 'dispatched' THEN c.now + n.timeout_ms * interval '1 ms' END,
  CASE WHEN n.status IN ('completed', 'failed', 'discarded', 'cancelled') THEN c.now END,
  n.failure_code, n.failure_detail, n.ambiguous
FROM unnest(
    $2::uuid[], $3::bigint[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::bigint[],
    $9::text[], $10::bigint[], $11::text[], $12::uuid[], $13::bigint[], $14::text[], $15::text[],
    $16::boolean[], $17::boolean[]) AS n (
    id, event_seq, event_id, route, ordering_key, status, attempts, retry_delays, timeout_ms,
    on_failed, dispatch_id, available_in_ms, failure_code, failure_detail, ambiguous,
    only_unrouted)
  INNER JOIN {schema}{prefix}outbox_events AS e ON e.seq = n.event_seq
  CROSS JOIN (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now) AS c
WHERE e.routed_at IS NULL
  OR NOT n.only_unrouted
ON CONFLICT DO NOTHING;

-- name: deliveries_insert_jobs
-- Stores jobs, before events_set_routed marks their events in the same transaction: one of an event
-- that was routed before is not stored. Left alone is a row that an earlier try has stored, a job
-- that this event has made in this queue, and one whose unique key an open job has. In one order of
-- keys, so that two settles do not wait for each other. Primary key of events; unique indexes.
INSERT INTO {schema}{prefix}outbox_deliveries (
  id, event_seq, event_id, slot, kind, route, status, retry_delays, timeout_ms, on_failed,
  available_at, finished_at, failure_code, failure_detail, job, queue, transport, priority,
  serial_key, serial_limit, unique_key, on_worker_death, max_deaths, timeout_limit_ms, hooks)
SELECT
  n.id, n.event_seq, n.event_id, e.slot, 'job', n.route, n.status, n.retry_delays, n.timeout_ms,
  n.on_failed,
  c.now + CASE WHEN n.status = 'pending' THEN n.available_in_ms ELSE 0 END * interval '1 ms',
  CASE WHEN n.status <> 'pending' THEN c.now END,
  n.failure_code, n.failure_detail, n.job, n.queue, n.transport, n.priority, n.serial_key,
  CASE WHEN n.serial_key IS NOT NULL THEN n.serial_limit END,
  n.unique_key, n.on_worker_death, n.max_deaths, n.timeout_limit_ms, n.hooks
FROM unnest(
    $2::uuid[], $3::bigint[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::bigint[],
    $9::text[], $10::bigint[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[],
    $16::integer[], $17::text[], $18::integer[], $19::text[], $20::text[], $21::integer[],
    $22::bigint[], $23::text[]) AS n (
    id, event_seq, event_id, route, status, retry_delays, timeout_ms, on_failed, available_in_ms,
    failure_code, failure_detail, job, queue, transport, priority, serial_key, serial_limit,
    unique_key, on_worker_death, max_deaths, timeout_limit_ms, hooks)
  INNER JOIN {schema}{prefix}outbox_events AS e ON e.seq = n.event_seq
  CROSS JOIN (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now) AS c
WHERE e.routed_at IS NULL
ORDER BY n.job, n.unique_key, n.event_seq
ON CONFLICT DO NOTHING;

-- name: deliveries_get
-- Which of these rows are there. Primary key.
SELECT d.id
FROM {schema}{prefix}outbox_deliveries AS d
WHERE d.id = ANY ($1::uuid[]);

-- name: deliveries_update
-- Changes the rows that the relay believes to see, and no others (compare-and-set). Pending again, a
-- row forgets its dispatch; a final one keeps its time as history. Primary key.
UPDATE {schema}{prefix}outbox_deliveries AS d
SET status = n.status,
  attempts = n.attempts,
  dispatch_id = n.dispatch_id,
  available_at = CASE
    WHEN n.status = 'pending' THEN c.now + n.available_in_ms * interval '1 ms'
    ELSE d.available_at
  END,
  dispatched_at = CASE n.status
    WHEN 'pending' THEN NULL
    WHEN 'dispatched' THEN c.now
    ELSE d.dispatched_at
  END,
  delivery_timeout_at = CASE
    WHEN n.status = 'dispatched' THEN c.now + d.timeout_ms * interval '1 ms'
  END,
  finished_at = CASE
    WHEN n.status IN ('completed', 'failed', 'discarded', 'cancelled') THEN c.now
  END,
  failure_code = n.failure_code,
  failure_detail = n.failure_detail,
  ambiguous = n.ambiguous
FROM unnest(
    $2::uuid[], $3::text[], $4::uuid[], $5::text[], $6::bigint[], $7::uuid[], $8::bigint[],
    $9::text[], $10::text[], $11::boolean[]) AS n (
    id, expected_status, expected_dispatch_id, status, attempts, dispatch_id, available_in_ms,
    failure_code, failure_detail, ambiguous)
  CROSS JOIN (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now) AS c
WHERE d.id = n.id
  AND d.current
  AND d.status = n.expected_status
  AND d.dispatch_id IS NOT DISTINCT FROM n.expected_dispatch_id
RETURNING d.id;

-- name: deliveries_release
-- Takes away the rows that held events, in the transaction that routes these. Primary key.
DELETE FROM {schema}{prefix}outbox_deliveries
WHERE id = ANY ($1::uuid[])
  AND status = 'held';

-- name: deliveries_due
-- What may be attempted now, and what was handed over and has not been answered in time, with its
-- event, in the order of events: of each (route, ordering key) an unbroken run from its head on. A
-- run is broken by a pending row that has to wait, by a taken row whose answer is awaited, and by a
-- dead letter that halts. Indexes: outbox_deliveries_open_idx; for each row with a key
-- outbox_deliveries_waiting_heads_idx and outbox_deliveries_taken_heads_idx, neither of which walks
-- over rows that are due. Only for rows of a global order whose reader does not own all partitions
-- is the whole queue looked at.
--
-- The first row is the time. $1 time, $2 partitions as bits, $3 their number, $4 routes, $5 rows,
-- $6 bytes, $7 whether all partitions are asked for.
-- Only here: works on sets; SQLite goes row by row.
WITH clock AS MATERIALIZED (
  SELECT coalesce($1::timestamptz, clock_timestamp()) AS now),
due AS (
  SELECT d.*
  FROM {schema}{prefix}outbox_deliveries AS d
  WHERE d.current
    AND d.status IN ('pending', 'dispatched')
    AND d.kind = 'publish'
    AND CASE d.status
      WHEN 'pending' THEN d.available_at
      ELSE d.delivery_timeout_at
    END <= (SELECT c.now FROM clock AS c)
    AND d.route = ANY ($4::text[])
    AND get_bit($2::bytea, (d.slot % $3::integer)::bigint) = 1
    AND (
      d.ordering_key IS NULL
      OR (
        NOT EXISTS (
          SELECT 1
          FROM {schema}{prefix}outbox_deliveries AS h
          WHERE h.current
            AND h.status = 'pending'
            AND h.ordering_key = d.ordering_key
            AND h.route = d.route
            AND h.available_at > (SELECT c.now FROM clock AS c)
            AND h.event_seq < d.event_seq)
        AND NOT EXISTS (
          SELECT 1
          FROM {schema}{prefix}outbox_deliveries AS h
          WHERE h.current
            AND (h.status = 'dispatched' OR (h.status = 'failed' AND h.on_failed = 'halt'))
            AND h.ordering_key = d.ordering_key
            AND h.route = d.route
            AND h.event_seq < d.event_seq
            AND (h.status = 'failed' OR h.delivery_timeout_at > (SELECT c.now FROM clock AS c)))
        AND (
          $7::boolean
          OR d.ordering_key <> '*'
          OR NOT EXISTS (
            SELECT 1
            FROM {schema}{prefix}outbox_deliveries AS h
            WHERE h.current
              AND h.status IN ('pending', 'dispatched')
              AND h.ordering_key = '*'
              AND h.route = d.route
              AND h.event_seq < d.event_seq
              AND get_bit($2::bytea, (h.slot % $3::integer)::bigint) = 0))))
  ORDER BY d.event_seq, d.route
  LIMIT $5::integer),
weighed AS (
  SELECT
    w.*,
    e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type, e.payload, e.payload_bytes,
    e.content_type, e.headers, e.created_at, e.available_at AS event_available_at,
    e.slot AS event_slot,
    coalesce(
      sum(coalesce(octet_length(e.payload), octet_length(e.payload_bytes), 0))
        OVER (
          ORDER BY w.event_seq, w.route
          ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING),
      0) AS previous
  FROM due AS w
    INNER JOIN {schema}{prefix}outbox_events AS e ON e.seq = w.event_seq)
SELECT
  NULL::uuid AS id,
  NULL::bigint AS event_seq,
  NULL::uuid AS event_id,
  NULL::text AS route,
  NULL::text AS ordering_key,
  NULL::text AS status,
  NULL::integer AS attempts,
  NULL::text AS retry_delays,
  NULL::bigint AS timeout_ms,
  NULL::text AS on_failed,
  NULL::uuid AS dispatch_id,
  c.now AS available_at,
  NULL::timestamptz AS dispatched_at,
  NULL::timestamptz AS delivery_timeout_at,
  NULL::timestamptz AS finished_at,
  NULL::text AS failure_code,
  NULL::text AS failure_detail,
  NULL::boolean AS ambiguous,
  NULL::integer AS generation,
  NULL::bigint AS seq,
  NULL::uuid AS event_uuid,
  NULL::text AS aggregate_type,
  NULL::text AS aggregate_id,
  NULL::bigint AS aggregate_version,
  NULL::text AS type,
  NULL::text AS payload,
  NULL::bytea AS payload_bytes,
  NULL::text AS content_type,
  NULL::text AS headers,
  NULL::timestamptz AS created_at,
  NULL::timestamptz AS event_available_at,
  NULL::smallint AS event_slot
FROM clock AS c
UNION ALL
(
  SELECT
    w.id, w.event_seq, w.event_id, w.route, w.ordering_key, w.status, w.attempts, w.retry_delays,
    w.timeout_ms, w.on_failed, w.dispatch_id, w.available_at, w.dispatched_at,
    w.delivery_timeout_at, w.finished_at, w.failure_code, w.failure_detail, w.ambiguous,
    w.generation,
    w.event_seq AS seq, w.event_id AS event_uuid, w.aggregate_type, w.aggregate_id,
    w.aggregate_version, w.type, w.payload, w.payload_bytes, w.content_type, w.headers,
    w.created_at, w.event_available_at, w.event_slot
  FROM weighed AS w
  WHERE w.previous <= $6::bigint
  ORDER BY w.event_seq, w.route
);

-- name: deliveries_next_due
-- The nearest time at which another delivery of these partitions and routes becomes due, and the
-- time now. Indexes: outbox_deliveries_due_idx and outbox_deliveries_timeout_idx, from now on.
-- Only here: works on sets; SQLite goes row by row.
SELECT
  c.now,
  least(
    (
      SELECT d.available_at
      FROM {schema}{prefix}outbox_deliveries AS d
      WHERE d.current
        AND d.status = 'pending'
        AND d.kind = 'publish'
        AND d.available_at > c.now
        AND d.route = ANY ($4::text[])
        AND get_bit($2::bytea, (d.slot % $3::integer)::bigint) = 1
      ORDER BY d.available_at
      LIMIT 1),
    (
      SELECT d.delivery_timeout_at
      FROM {schema}{prefix}outbox_deliveries AS d
      WHERE d.status = 'dispatched'
        AND d.kind = 'publish'
        AND d.delivery_timeout_at > c.now
        AND d.route = ANY ($4::text[])
        AND get_bit($2::bytea, (d.slot % $3::integer)::bigint) = 1
      ORDER BY d.delivery_timeout_at
      LIMIT 1)) AS next_at
FROM (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now OFFSET 0) AS c;

-- name: deliveries_count
-- For `status`, by route. Failures of which a person made a next generation count no more as dead,
-- but their attempts were made. Reads the table once.
SELECT
  d.route,
  count(*) FILTER (WHERE d.status = 'held') AS held,
  count(*) FILTER (WHERE d.status = 'pending' AND d.available_at <= c.now) AS due,
  count(*) FILTER (WHERE d.status = 'pending' AND d.available_at > c.now) AS delayed,
  count(*) FILTER (WHERE d.status = 'dispatched') AS dispatched,
  count(*) FILTER (WHERE d.status = 'dispatched' AND d.delivery_timeout_at <= c.now) AS overdue,
  count(*) FILTER (WHERE d.status = 'completed') AS completed,
  count(*) FILTER (WHERE d.status = 'failed' AND d.current) AS failed,
  count(*) FILTER (WHERE d.status = 'discarded') AS discarded,
  count(*) FILTER (WHERE d.status = 'cancelled') AS cancelled,
  sum(d.attempts)::bigint AS retries,
  min(d.available_at) FILTER (WHERE d.status = 'pending' AND d.available_at <= c.now) AS oldest_due,
  min(d.dispatched_at) FILTER (WHERE d.status = 'dispatched') AS oldest_dispatched,
  min(c.now) AS now
FROM {schema}{prefix}outbox_deliveries AS d
  CROSS JOIN (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now OFFSET 0) AS c
GROUP BY d.route
ORDER BY d.route;

-- name: deliveries_dead
-- Dead letters behind a place that meet every condition given (null: any), oldest first. Index:
-- outbox_deliveries_failed_idx, from that place on. $7 and $8 are the place.
SELECT
  d.id, d.event_seq, d.event_id, d.route, d.ordering_key, d.status, d.attempts, d.retry_delays,
  d.timeout_ms, d.on_failed, d.dispatch_id, d.available_at, d.dispatched_at, d.delivery_timeout_at,
  d.finished_at, d.failure_code, d.failure_detail, d.ambiguous, d.generation, e.type,
  e.aggregate_type, e.aggregate_id
FROM {schema}{prefix}outbox_deliveries AS d
  INNER JOIN {schema}{prefix}outbox_events AS e ON e.seq = d.event_seq
WHERE d.current
  AND d.status = 'failed'
  AND (d.event_seq, d.route) > ($7::bigint, $8::text)
  AND ($1::uuid[] IS NULL OR d.id = ANY ($1::uuid[]))
  AND ($2::text IS NULL OR d.route = $2::text)
  AND ($3::text IS NULL OR e.type = $3::text)
  AND ($4::text IS NULL OR d.failure_code = $4::text)
  AND ($5::boolean IS NULL OR d.ambiguous = $5::boolean)
ORDER BY d.event_seq, d.route
LIMIT $6::bigint;

-- name: deliveries_retry
-- Makes these dead letters history and stores the next generation of each: the same event, route,
-- key and policy, due at once; a job has its checkpoint, too. A job whose unique key an open one
-- has, or one before it in this list, stays dead. Bumps their partitions and writes the audit. $2
-- who, $3 why, $4 number of partitions. Primary key; per job with such a key
-- outbox_jobs_unique_key. The order is that of deliveries_dead.
-- Only here: works on sets; SQLite goes row by row.
WITH asked AS (
  SELECT
    d.id,
    row_number() OVER (PARTITION BY d.job, d.unique_key ORDER BY d.event_seq, d.route) AS place
  FROM {schema}{prefix}outbox_deliveries AS d
  WHERE d.id = ANY ($5::uuid[])
    AND d.current
    AND d.status = 'failed'),
history AS (
  UPDATE {schema}{prefix}outbox_deliveries AS d
  SET current = false
  FROM asked AS a
  WHERE d.id = a.id
    AND (
      d.unique_key IS NULL
      OR (
        a.place = 1
        AND NOT EXISTS (
          SELECT 1
          FROM {schema}{prefix}outbox_deliveries AS o
          WHERE o.job = d.job
            AND o.unique_key = d.unique_key
            AND o.unique_key IS NOT NULL
            AND o.status IN ('pending', 'dispatched'))))
  RETURNING d.*),
made AS (
  INSERT INTO {schema}{prefix}outbox_deliveries (
    id, event_seq, event_id, slot, kind, route, ordering_key, status, retry_delays, timeout_ms,
    on_failed, available_at, generation, job, queue, transport, priority, serial_key, serial_limit,
    unique_key, on_worker_death, max_deaths, timeout_limit_ms, checkpoint, hooks)
  SELECT {schema}{prefix}outbox_uuidv7(), h.event_seq, h.event_id, h.slot, h.kind, h.route,
    h.ordering_key, 'pending', h.retry_delays, h.timeout_ms, h.on_failed,
    coalesce($1::timestamptz, clock_timestamp()), h.generation + 1, h.job, h.queue, h.transport,
    h.priority, h.serial_key, h.serial_limit, h.unique_key, h.on_worker_death, h.max_deaths,
    h.timeout_limit_ms, h.checkpoint, h.hooks
  FROM history AS h
  ORDER BY h.event_seq, h.route
  RETURNING id, event_seq, route),
bumped AS (
  UPDATE {schema}{prefix}outbox_partitions AS p
  SET generation = p.generation + 1
  WHERE p.partition IN (SELECT h.slot % $4::integer FROM history AS h)),
audited AS (
  INSERT INTO {schema}{prefix}postrider_audit (at, who, action, object, reason, detail)
  SELECT coalesce($1::timestamptz, clock_timestamp()), $2::text, 'dead_retry', h.id::text, $3::text,
    m.id::text
  FROM history AS h
    INNER JOIN made AS m ON m.event_seq = h.event_seq AND m.route = h.route
  ORDER BY h.event_seq, h.route)
SELECT m.id
FROM made AS m
ORDER BY m.event_seq, m.route;

-- name: deliveries_discard
-- Gives these dead letters up. Parameters and order as in deliveries_retry. Primary key.
WITH ended AS (
  UPDATE {schema}{prefix}outbox_deliveries AS d
  SET status = 'discarded',
    finished_at = coalesce($1::timestamptz, clock_timestamp())
  WHERE d.id = ANY ($5::uuid[])
    AND d.current
    AND d.status = 'failed'
  RETURNING d.id, d.event_seq, d.route, d.slot),
bumped AS (
  UPDATE {schema}{prefix}outbox_partitions AS p
  SET generation = p.generation + 1
  WHERE p.partition IN (SELECT n.slot % $4::integer FROM ended AS n)),
audited AS (
  INSERT INTO {schema}{prefix}postrider_audit (at, who, action, object, reason, detail)
  SELECT coalesce($1::timestamptz, clock_timestamp()), $2::text, 'dead_discard', n.id::text,
    $3::text, ''
  FROM ended AS n
  ORDER BY n.event_seq, n.route)
SELECT n.id
FROM ended AS n
ORDER BY n.event_seq, n.route;

-- name: deliveries_find
-- Where a delivery stands in the order of the list. Primary key.
SELECT d.event_seq, d.route, d.generation
FROM {schema}{prefix}outbox_deliveries AS d
WHERE d.id = $1::uuid;

-- name: deliveries_bound
-- The last event whose deliveries a search for people looks at, $4 rows behind the events up to
-- $1 ($2 and $3 as in deliveries_list), and the last of its deliveries in the order of the list.
-- Unique index on (event_seq, route, generation).
SELECT d.id, d.event_seq
FROM {schema}{prefix}outbox_deliveries AS d
WHERE d.event_seq = (
  SELECT b.event_seq
  FROM {schema}{prefix}outbox_deliveries AS b
  WHERE b.event_seq <= $1::bigint
    AND (
      $2::text IS NULL
      OR (b.event_seq, b.route, b.generation) < ($1::bigint, $2::text, $3::integer))
  ORDER BY b.event_seq DESC, b.route DESC, b.generation DESC
  OFFSET $4::bigint
  LIMIT 1)
ORDER BY d.route, d.generation
LIMIT 1;

-- name: deliveries_list
-- For people: deliveries of the events from $1 to $2 that meet every condition given (null: any),
-- in falling order. $3 and $4 leave out what stands before this route and generation in the event
-- $2. $5 id, $6 route, $7 status, $8 and $9 aggregate, $10 what is due by $12 only, $11 history,
-- too; $13 rows. Indexes: the unique one on (event_seq, route, generation), or, as a plan is made
-- for the values given, the partial one of the status, or the primary key.
SELECT
  d.id, d.event_seq, d.event_id, d.route, d.ordering_key, d.status, d.attempts, d.retry_delays,
  d.timeout_ms, d.on_failed, d.dispatch_id, d.available_at, d.dispatched_at, d.delivery_timeout_at,
  d.finished_at, d.failure_code, d.failure_detail, d.ambiguous, d.generation, d.current, e.type,
  e.aggregate_type, e.aggregate_id
FROM {schema}{prefix}outbox_deliveries AS d
  CROSS JOIN LATERAL (
    SELECT e.type, e.aggregate_type, e.aggregate_id
    FROM {schema}{prefix}outbox_events AS e
    WHERE e.seq = d.event_seq
    OFFSET 0) AS e
WHERE d.event_seq >= $1::bigint
  AND d.event_seq <= $2::bigint
  AND (
    $3::text IS NULL
    OR (d.event_seq, d.route, d.generation) < ($2::bigint, $3::text, $4::integer))
  AND ($5::uuid IS NULL OR d.id = $5::uuid)
  AND ($6::text IS NULL OR d.route = $6::text)
  AND ($7::text IS NULL OR d.status = $7::text)
  AND ($8::text IS NULL OR (e.aggregate_type = $8::text AND e.aggregate_id = $9::text))
  AND (
    NOT $10::boolean
    OR (d.status = 'pending' AND d.available_at <= coalesce($12::timestamptz, clock_timestamp())))
  AND ($11::boolean OR d.current)
ORDER BY d.event_seq DESC, d.route DESC, d.generation DESC
LIMIT $13::bigint;
