-- Jobs, and the workers that take them.
--
-- Statements that return a job give its columns in the order of `read_job_columns`; those that
-- return a task have those of `read_task` behind them, and its event last.
--
-- Where a row is found by its id, the status that it must have comes out of a subquery (`OFFSET 0`):
-- written as a constant it would open the partial indexes of running rows to the planner, which
-- takes them for empty while statistics are young, and then reads all that runs for each row.

-- name: jobs_take
-- Dispatches due jobs to worker $2 and returns them as tasks, in order. $1 time, $3 queues and $4
-- how much of each, $5 the time after which a job counts as more urgent by one, in milliseconds (0:
-- never), $6 rows altogether, $7 as many fresh ids: made by the caller, who knows them when the
-- answer to COMMIT is lost (jobs_taken).
--
-- A queue's pending rows stand in outbox_jobs_take_idx by priority and due time. `lanes` jumps from
-- priority to priority, so what is delayed in one costs one probe; `picked` then reads each lane
-- from its front and stops when it has enough, passing over rows that another taker has locked. A
-- row with a serial key is taken when fewer open rows than its limit stand before it, and a slot is
-- free (outbox_jobs_serial_idx, outbox_jobs_serial_slot_key). Rows that wait for a key whose slots
-- are all taken (`full_keys`, found among what runs) are stepped over, 2 us each, measured; a row
-- that waits for a delayed one of its key costs a probe. Of a key with a great limit the last row
-- that may run is found once (`wide_keys`): counting what stands before each row would cost its
-- limit for each. Two takers with old snapshots may still want one slot, and the unique index ends
-- one of them: the caller then takes again (see jobs_take_turns). Takers of queues with a rate wait
-- for each other at the bucket, not at the jobs.
-- Only here: works on sets; SQLite goes row by row.
WITH RECURSIVE clock AS MATERIALIZED (
  SELECT coalesce($1::timestamptz, clock_timestamp()) AS now),
taker AS MATERIALIZED (
  SELECT w.id
  FROM {schema}{prefix}outbox_workers AS w
  WHERE w.id = $2::uuid
    AND w.state IN ('running', 'quiet', 'stopping')),
buckets AS MATERIALIZED (
  SELECT
    q.queue,
    least(
      q.rate_limit,
      CASE
        WHEN q.refilled_at IS NULL THEN q.rate_limit
        ELSE q.tokens
          + greatest(date_part('epoch', c.now - q.refilled_at), 0) * 1000 * q.rate_limit
            / q.rate_period_ms
      END)::double precision AS tokens
  FROM {schema}{prefix}outbox_queues AS q
    CROSS JOIN clock AS c
  WHERE q.queue = ANY ($3::text[])
    AND q.rate_limit IS NOT NULL
    AND q.paused_at IS NULL
    AND EXISTS (SELECT 1 FROM taker)
  ORDER BY q.queue
  FOR NO KEY UPDATE OF q),
asked AS MATERIALIZED (
  -- A token that lacks a billionth by rounding is one.
  SELECT
    a.queue,
    least(a.at_most, floor(b.tokens + 1e-9))::bigint AS at_most,
    a.place
  FROM unnest($3::text[], $4::bigint[]) WITH ORDINALITY AS a (queue, at_most, place)
    LEFT JOIN buckets AS b ON b.queue = a.queue
  WHERE EXISTS (SELECT 1 FROM taker)
    AND NOT EXISTS (
      SELECT 1
      FROM {schema}{prefix}outbox_queues AS q
      WHERE q.queue = a.queue
        AND q.paused_at IS NOT NULL)),
full_keys AS MATERIALIZED (
  SELECT r.queue, r.serial_key, r.serial_limit
  FROM (
    SELECT
      u.queue,
      u.serial_key,
      u.serial_limit,
      count(*) OVER (PARTITION BY u.queue, u.serial_key) AS running
    FROM {schema}{prefix}outbox_deliveries AS u
    WHERE u.queue = ANY ($3::text[])
      AND u.serial_slot IS NOT NULL) AS r
  WHERE r.running >= r.serial_limit),
lanes AS (
  SELECT a.queue, h.priority, h.available_at, h.serial_key, h.serial_limit
  FROM asked AS a
    CROSS JOIN LATERAL (
      SELECT d.priority, d.available_at, d.serial_key, d.serial_limit
      FROM {schema}{prefix}outbox_deliveries AS d
      WHERE d.queue = a.queue
        AND d.status = 'pending'
        AND d.transport = 'database'
      ORDER BY d.priority, d.available_at
      LIMIT 1) AS h
  WHERE a.at_most > 0
  UNION ALL
  SELECT l.queue, h.priority, h.available_at, h.serial_key, h.serial_limit
  FROM lanes AS l
    CROSS JOIN LATERAL (
      SELECT d.priority, d.available_at, d.serial_key, d.serial_limit
      FROM {schema}{prefix}outbox_deliveries AS d
      WHERE d.queue = l.queue
        AND d.priority > l.priority
        AND d.status = 'pending'
        AND d.transport = 'database'
      ORDER BY d.priority, d.available_at
      LIMIT 1) AS h),
wide_keys AS MATERIALIZED (
  -- Keys with a limit above 1 of which something runs or stands in front: the last of their rows
  -- that may run, found once and not for each row.
  SELECT
    k.queue,
    k.serial_key,
    k.serial_limit,
    coalesce(f.event_seq, 9223372036854775807) AS event_seq,
    coalesce(f.id, 'ffffffff-ffff-ffff-ffff-ffffffffffff') AS id
  FROM (
    SELECT u.queue, u.serial_key, u.serial_limit
    FROM {schema}{prefix}outbox_deliveries AS u
    WHERE u.queue = ANY ($3::text[])
      AND u.serial_slot IS NOT NULL
      AND u.serial_limit > 1
    UNION
    SELECT l.queue, l.serial_key, l.serial_limit
    FROM lanes AS l
    WHERE l.serial_limit > 1) AS k
    LEFT JOIN LATERAL (
      SELECT h.event_seq, h.id
      FROM {schema}{prefix}outbox_deliveries AS h
      WHERE h.queue = k.queue
        AND h.serial_key = k.serial_key
        AND h.status IN ('pending', 'dispatched')
      ORDER BY h.event_seq, h.id
      OFFSET k.serial_limit - 1
      LIMIT 1) AS f ON true),
picked AS MATERIALIZED (
  SELECT p.id, p.queue, p.serial_key, p.serial_limit, p.event_seq, row_number() OVER () AS place
  FROM (
    SELECT t.id, t.queue, t.serial_key, t.serial_limit, t.event_seq
    FROM (
      SELECT a.queue, a.at_most
      FROM asked AS a
      WHERE a.at_most > 0
      ORDER BY a.place) AS a
      CROSS JOIN LATERAL (
        SELECT j.id, j.queue, j.serial_key, j.serial_limit, j.event_seq
        FROM (
          SELECT l.priority
          FROM lanes AS l
            CROSS JOIN clock AS c
          WHERE l.queue = a.queue
            AND l.available_at <= c.now
          ORDER BY
            l.priority - CASE
              WHEN $5::bigint > 0
                THEN floor(date_part('epoch', c.now - l.available_at) * 1000 / $5::bigint)
              ELSE 0
            END,
            l.available_at,
            l.priority) AS l
          CROSS JOIN LATERAL (
            SELECT d.id, d.queue, d.serial_key, d.serial_limit, d.event_seq
            FROM {schema}{prefix}outbox_deliveries AS d
            WHERE d.queue = a.queue
              AND d.priority = l.priority
              AND d.status = 'pending'
              AND d.transport = 'database'
              AND d.available_at <= (SELECT c.now FROM clock AS c)
              AND (
                d.serial_key IS NULL
                OR (
                  (d.queue, d.serial_key, d.serial_limit) NOT IN (
                    SELECT f.queue, f.serial_key, f.serial_limit
                    FROM full_keys AS f)
                  AND coalesce(
                    (
                      SELECT (d.event_seq, d.id) <= (k.event_seq, k.id)
                      FROM wide_keys AS k
                      WHERE k.queue = d.queue
                        AND k.serial_key = d.serial_key
                        AND k.serial_limit = d.serial_limit),
                    (
                      SELECT count(*)
                      FROM (
                        SELECT 1
                        FROM {schema}{prefix}outbox_deliveries AS h
                        WHERE h.queue = d.queue
                          AND h.serial_key = d.serial_key
                          AND h.status IN ('pending', 'dispatched')
                          AND (h.event_seq, h.id) < (d.event_seq, d.id)
                        LIMIT d.serial_limit) AS h) < d.serial_limit)))
            ORDER BY d.available_at, d.id
            LIMIT a.at_most
            FOR NO KEY UPDATE OF d SKIP LOCKED) AS j
        LIMIT a.at_most) AS t
    LIMIT $6::bigint) AS p
  LIMIT 1000),
free_slots AS MATERIALIZED (
  SELECT k.queue, k.serial_key, s.slot, s.nth
  FROM (
    SELECT p.queue, p.serial_key, max(p.serial_limit) AS serial_limit, count(*) AS jobs
    FROM picked AS p
    WHERE p.serial_key IS NOT NULL
    GROUP BY p.queue, p.serial_key) AS k
    CROSS JOIN LATERAL (
      SELECT g.slot, row_number() OVER (ORDER BY g.slot) AS nth
      FROM (
        SELECT n.slot
        FROM generate_series(0, k.serial_limit - 1) AS n (slot)
        EXCEPT
        SELECT u.serial_slot
        FROM {schema}{prefix}outbox_deliveries AS u
        WHERE u.queue = k.queue
          AND u.serial_key = k.serial_key
          AND u.serial_slot IS NOT NULL) AS g
      ORDER BY g.slot
      LIMIT k.jobs) AS s),
slotted AS MATERIALIZED (
  SELECT n.id, n.place, n.serial_key IS NOT NULL AS serial, f.slot
  FROM (
    SELECT
      p.*,
      row_number() OVER (
        PARTITION BY p.queue, p.serial_key
        ORDER BY p.event_seq, p.id) AS nth
    FROM picked AS p) AS n
    LEFT JOIN free_slots AS f ON f.queue = n.queue
      AND f.serial_key = n.serial_key
      AND f.nth = n.nth
      AND f.slot < n.serial_limit),
taken AS (
  UPDATE {schema}{prefix}outbox_deliveries AS d
  SET status = 'dispatched',
    dispatch_id = ($7::uuid[])[s.place],
    dispatched_at = c.now,
    delivery_timeout_at = c.now + d.timeout_ms * interval '1 ms',
    worker = $2::uuid,
    serial_slot = s.slot,
    deaths = d.deaths + 1,
    result = NULL
  FROM slotted AS s
    CROSS JOIN clock AS c
  WHERE d.id = s.id
    AND (s.slot IS NOT NULL OR NOT s.serial)
  RETURNING
    d.id, d.event_seq, d.event_id, d.route, d.job, d.queue, d.attempts, d.retry_delays,
    d.timeout_ms, d.timeout_limit_ms, d.on_worker_death, d.max_deaths, d.deaths, d.snoozes,
    d.interruptions, d.cancel_requested_at IS NOT NULL AS cancel_requested, d.hooks, d.dispatch_id,
    c.now, d.delivery_timeout_at, d.checkpoint, s.place),
charged AS (
  UPDATE {schema}{prefix}outbox_queues AS q
  SET tokens = b.tokens - t.jobs,
    refilled_at = c.now
  FROM buckets AS b
    INNER JOIN (
      SELECT taken.queue, count(*) AS jobs
      FROM taken
      GROUP BY taken.queue) AS t ON t.queue = b.queue
    CROSS JOIN clock AS c
  WHERE q.queue = b.queue)
SELECT
  t.id, t.event_seq, t.event_id, t.route, t.job, t.queue, t.attempts, t.retry_delays,
  t.timeout_ms, t.timeout_limit_ms, t.on_worker_death, t.max_deaths, t.deaths, t.snoozes,
  t.interruptions, t.cancel_requested, t.hooks, t.dispatch_id, t.now, t.delivery_timeout_at,
  t.checkpoint, e.seq, e.id AS event_uuid, e.aggregate_type, e.aggregate_id, e.aggregate_version,
  e.type, e.payload, e.payload_bytes, e.content_type, e.headers, e.created_at, e.available_at, e.slot
FROM taken AS t
  INNER JOIN {schema}{prefix}outbox_events AS e ON e.seq = t.event_seq
ORDER BY t.place;

-- name: jobs_take_turns
-- Before jobs_take, in its transaction and with a snapshot of its own: where one of the queues $1 has
-- a rate, or a key with a limit above 1 in front, takers come one after the other, until COMMIT.
-- They would want the same slots, wait for each other at the unique index and end there, or in a
-- deadlock; or wait at the bucket and then look at rows that are taken. Lock class: that of
-- outbox_lock_aggregate and 1. Index: outbox_jobs_take_idx, a probe per queue.
-- Only here: SQLite has one writer.
SELECT pg_advisory_xact_lock(
  1349743989,
  hashtext('{schema}{prefix}outbox_deliveries ' || q.queue))
FROM (
  SELECT DISTINCT a.queue
  FROM unnest($1::text[]) AS a (queue)
  WHERE (
    SELECT d.serial_limit
    FROM {schema}{prefix}outbox_deliveries AS d
    WHERE d.queue = a.queue
      AND d.status = 'pending'
      AND d.transport = 'database'
    ORDER BY d.priority, d.available_at
    LIMIT 1) > 1
    OR EXISTS (
      SELECT 1
      FROM {schema}{prefix}outbox_queues AS r
      WHERE r.queue = a.queue
        AND r.rate_limit IS NOT NULL
        AND r.paused_at IS NULL)
  ORDER BY a.queue) AS q;

-- name: jobs_taken
-- What of these dispatches worker $2 has, as tasks: after a take of which nobody knows whether it
-- was committed. Index: outbox_jobs_worker_idx.
-- Only here: only a server can lose the answer to COMMIT.
SELECT
  d.id, d.event_seq, d.event_id, d.route, d.job, d.queue, d.attempts, d.retry_delays,
  d.timeout_ms, d.timeout_limit_ms, d.on_worker_death, d.max_deaths, d.deaths, d.snoozes,
  d.interruptions, d.cancel_requested_at IS NOT NULL AS cancel_requested, d.hooks, d.dispatch_id,
  c.now, d.delivery_timeout_at, d.checkpoint,
  e.seq, e.id AS event_uuid, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type,
  e.payload, e.payload_bytes, e.content_type, e.headers, e.created_at, e.available_at, e.slot
FROM {schema}{prefix}outbox_deliveries AS d
  INNER JOIN {schema}{prefix}outbox_events AS e ON e.seq = d.event_seq
  CROSS JOIN (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now OFFSET 0) AS c
WHERE d.worker = $2::uuid
  AND d.delivery_timeout_at IS NOT NULL
  AND d.dispatch_id = ANY ($3::uuid[])
ORDER BY array_position($3::uuid[], d.dispatch_id);

-- name: jobs_next_due
-- When another job of queues $2 becomes due after now, or a token of a queue with due jobs is
-- there, and the time now. Index: outbox_jobs_take_idx, one or two probes for each priority.
-- Only here: works on sets; SQLite goes row by row.
WITH RECURSIVE clock AS MATERIALIZED (
  SELECT coalesce($1::timestamptz, clock_timestamp()) AS now),
asked AS MATERIALIZED (
  SELECT
    a.queue,
    CASE
      WHEN q.refilled_at IS NOT NULL THEN q.refilled_at
        + greatest(1 - q.tokens, 0) * q.rate_period_ms / q.rate_limit * interval '1 ms'
    END AS token_at
  FROM unnest($2::text[]) AS a (queue)
    LEFT JOIN {schema}{prefix}outbox_queues AS q ON q.queue = a.queue
  WHERE q.paused_at IS NULL),
lanes AS (
  SELECT a.queue, a.token_at, h.priority, h.available_at
  FROM asked AS a
    CROSS JOIN LATERAL (
      SELECT d.priority, d.available_at
      FROM {schema}{prefix}outbox_deliveries AS d
      WHERE d.queue = a.queue
        AND d.status = 'pending'
        AND d.transport = 'database'
      ORDER BY d.priority, d.available_at
      LIMIT 1) AS h
  UNION ALL
  SELECT l.queue, l.token_at, h.priority, h.available_at
  FROM lanes AS l
    CROSS JOIN LATERAL (
      SELECT d.priority, d.available_at
      FROM {schema}{prefix}outbox_deliveries AS d
      WHERE d.queue = l.queue
        AND d.priority > l.priority
        AND d.status = 'pending'
        AND d.transport = 'database'
      ORDER BY d.priority, d.available_at
      LIMIT 1) AS h)
SELECT
  c.now,
  (
    SELECT min(
      CASE
        WHEN l.available_at > c.now THEN greatest(l.available_at, l.token_at)
        WHEN l.token_at > c.now THEN l.token_at
        ELSE (
          SELECT d.available_at
          FROM {schema}{prefix}outbox_deliveries AS d
          WHERE d.queue = l.queue
            AND d.priority = l.priority
            AND d.status = 'pending'
            AND d.transport = 'database'
            AND d.available_at > c.now
          ORDER BY d.available_at
          LIMIT 1)
      END)
    FROM lanes AS l) AS next_at
FROM clock AS c;

-- name: jobs_hand_out
-- Dispatches due jobs of the routes $2 that go to a broker, $3 at most, and returns them as tasks:
-- by route, due time and id. Serial keys and rates as in jobs_take: a route gives no more than its
-- queue has tokens. A route has one queue unless its configuration was changed; then the queue of
-- its first due row counts (`heads`), and rows of others that have a rate of their own wait until
-- they come first, as a walk over all that a rate holds back would cost more than it finds.
-- Indexes: outbox_jobs_hand_out_idx, and for rows with a key outbox_jobs_serial_idx and
-- outbox_jobs_serial_slot_key.
-- Only here: works on sets; SQLite goes row by row.
WITH clock AS MATERIALIZED (
  SELECT coalesce($1::timestamptz, clock_timestamp()) AS now),
heads AS MATERIALIZED (
  SELECT a.route, a.place, h.queue
  FROM unnest($2::text[]) WITH ORDINALITY AS a (route, place)
    CROSS JOIN LATERAL (
      SELECT d.queue
      FROM {schema}{prefix}outbox_deliveries AS d
      WHERE d.route = a.route
        AND d.status = 'pending'
        AND d.transport = 'broker'
        AND d.available_at <= (SELECT c.now FROM clock AS c)
        AND NOT EXISTS (
          SELECT 1
          FROM {schema}{prefix}outbox_queues AS q
          WHERE q.queue = d.queue
            AND q.paused_at IS NOT NULL)
      ORDER BY d.available_at, d.id
      LIMIT 1) AS h),
buckets AS MATERIALIZED (
  SELECT
    q.queue,
    least(
      q.rate_limit,
      CASE
        WHEN q.refilled_at IS NULL THEN q.rate_limit
        ELSE q.tokens
          + greatest(date_part('epoch', c.now - q.refilled_at), 0) * 1000 * q.rate_limit
            / q.rate_period_ms
      END)::double precision AS tokens
  FROM {schema}{prefix}outbox_queues AS q
    CROSS JOIN clock AS c
  WHERE q.queue IN (SELECT h.queue FROM heads AS h)
    AND q.rate_limit IS NOT NULL
    AND q.paused_at IS NULL
  ORDER BY q.queue
  FOR NO KEY UPDATE OF q),
asked AS MATERIALIZED (
  -- A token that lacks a billionth by rounding is one.
  SELECT h.route, h.place, least($3::bigint, floor(b.tokens + 1e-9))::bigint AS at_most
  FROM heads AS h
    LEFT JOIN buckets AS b ON b.queue = h.queue),
picked AS MATERIALIZED (
  SELECT p.id, p.queue, p.serial_key, p.serial_limit, p.event_seq, row_number() OVER () AS place
  FROM (
    SELECT j.id, j.queue, j.serial_key, j.serial_limit, j.event_seq
    FROM (
      SELECT a.route, a.at_most
      FROM asked AS a
      WHERE a.at_most > 0
      ORDER BY a.place) AS a
      CROSS JOIN LATERAL (
        SELECT d.id, d.queue, d.serial_key, d.serial_limit, d.event_seq
        FROM {schema}{prefix}outbox_deliveries AS d
        WHERE d.route = a.route
          AND d.status = 'pending'
          AND d.transport = 'broker'
          AND d.available_at <= (SELECT c.now FROM clock AS c)
          AND NOT EXISTS (
            SELECT 1
            FROM {schema}{prefix}outbox_queues AS q
            WHERE q.queue = d.queue
              AND q.paused_at IS NOT NULL)
          AND (
            d.serial_key IS NULL
            OR (
              (
                SELECT count(*)
                FROM (
                  SELECT 1
                  FROM {schema}{prefix}outbox_deliveries AS h
                  WHERE h.queue = d.queue
                    AND h.serial_key = d.serial_key
                    AND h.status IN ('pending', 'dispatched')
                    AND (h.event_seq, h.id) < (d.event_seq, d.id)
                  LIMIT d.serial_limit) AS h) < d.serial_limit
              AND (
                SELECT count(*)
                FROM {schema}{prefix}outbox_deliveries AS u
                WHERE u.queue = d.queue
                  AND u.serial_key = d.serial_key
                  AND u.serial_slot IS NOT NULL) < d.serial_limit))
        ORDER BY d.available_at, d.id
        LIMIT a.at_most
        FOR NO KEY UPDATE OF d SKIP LOCKED) AS j
    LIMIT $3::bigint) AS p
  LIMIT 1000),
admitted AS MATERIALIZED (
  SELECT r.id, r.queue, r.serial_key, r.serial_limit, r.event_seq, r.place
  FROM (
    SELECT p.*, row_number() OVER (PARTITION BY p.queue ORDER BY p.place) AS nth
    FROM picked AS p) AS r
    LEFT JOIN {schema}{prefix}outbox_queues AS q
      ON q.queue = r.queue AND q.rate_limit IS NOT NULL
    LEFT JOIN buckets AS b ON b.queue = r.queue
  WHERE q.queue IS NULL
    OR r.nth <= floor(b.tokens + 1e-9)),
free_slots AS MATERIALIZED (
  SELECT k.queue, k.serial_key, s.slot, s.nth
  FROM (
    SELECT p.queue, p.serial_key, max(p.serial_limit) AS serial_limit, count(*) AS jobs
    FROM admitted AS p
    WHERE p.serial_key IS NOT NULL
    GROUP BY p.queue, p.serial_key) AS k
    CROSS JOIN LATERAL (
      SELECT g.slot, row_number() OVER (ORDER BY g.slot) AS nth
      FROM (
        SELECT n.slot
        FROM generate_series(0, k.serial_limit - 1) AS n (slot)
        EXCEPT
        SELECT u.serial_slot
        FROM {schema}{prefix}outbox_deliveries AS u
        WHERE u.queue = k.queue
          AND u.serial_key = k.serial_key
          AND u.serial_slot IS NOT NULL) AS g
      ORDER BY g.slot
      LIMIT k.jobs) AS s),
slotted AS MATERIALIZED (
  SELECT n.id, n.place, n.serial_key IS NOT NULL AS serial, f.slot
  FROM (
    SELECT
      p.*,
      row_number() OVER (
        PARTITION BY p.queue, p.serial_key
        ORDER BY p.event_seq, p.id) AS nth
    FROM admitted AS p) AS n
    LEFT JOIN free_slots AS f ON f.queue = n.queue
      AND f.serial_key = n.serial_key
      AND f.nth = n.nth
      AND f.slot < n.serial_limit),
taken AS (
  UPDATE {schema}{prefix}outbox_deliveries AS d
  SET status = 'dispatched',
    dispatch_id = gen_random_uuid(),
    dispatched_at = c.now,
    delivery_timeout_at = c.now + d.timeout_ms * interval '1 ms',
    serial_slot = s.slot,
    deaths = d.deaths + 1,
    result = NULL
  FROM slotted AS s
    CROSS JOIN clock AS c
  WHERE d.id = s.id
    AND (s.slot IS NOT NULL OR NOT s.serial)
  RETURNING
    d.id, d.event_seq, d.event_id, d.route, d.job, d.queue, d.attempts, d.retry_delays,
    d.timeout_ms, d.timeout_limit_ms, d.on_worker_death, d.max_deaths, d.deaths, d.snoozes,
    d.interruptions, d.cancel_requested_at IS NOT NULL AS cancel_requested, d.hooks, d.dispatch_id,
    c.now, d.delivery_timeout_at, d.checkpoint, s.place),
charged AS (
  UPDATE {schema}{prefix}outbox_queues AS q
  SET tokens = b.tokens - t.jobs,
    refilled_at = c.now
  FROM buckets AS b
    INNER JOIN (
      SELECT taken.queue, count(*) AS jobs
      FROM taken
      GROUP BY taken.queue) AS t ON t.queue = b.queue
    CROSS JOIN clock AS c
  WHERE q.queue = b.queue)
SELECT
  t.id, t.event_seq, t.event_id, t.route, t.job, t.queue, t.attempts, t.retry_delays,
  t.timeout_ms, t.timeout_limit_ms, t.on_worker_death, t.max_deaths, t.deaths, t.snoozes,
  t.interruptions, t.cancel_requested, t.hooks, t.dispatch_id, t.now, t.delivery_timeout_at,
  t.checkpoint, e.seq, e.id AS event_uuid, e.aggregate_type, e.aggregate_id, e.aggregate_version,
  e.type, e.payload, e.payload_bytes, e.content_type, e.headers, e.created_at, e.available_at, e.slot
FROM taken AS t
  INNER JOIN {schema}{prefix}outbox_events AS e ON e.seq = t.event_seq
ORDER BY t.place;

-- name: jobs_next_hand_out
-- When another job of the routes $2 becomes due after now, or a token of the queue of what is due
-- first is there, and the time now. Index: outbox_jobs_hand_out_idx, two probes for each route.
-- Only here: works on sets; SQLite goes row by row.
SELECT
  c.now,
  (
    SELECT min(n.next_at)
    FROM unnest($2::text[]) AS a (route)
      CROSS JOIN LATERAL (
        (
          SELECT d.available_at AS next_at
          FROM {schema}{prefix}outbox_deliveries AS d
          WHERE d.route = a.route
            AND d.status = 'pending'
            AND d.transport = 'broker'
            AND d.available_at > c.now
          ORDER BY d.available_at
          LIMIT 1)
        UNION ALL
        SELECT q.refilled_at
          + greatest(1 - q.tokens, 0) * q.rate_period_ms / q.rate_limit * interval '1 ms'
        FROM (
          SELECT d.queue
          FROM {schema}{prefix}outbox_deliveries AS d
          WHERE d.route = a.route
            AND d.status = 'pending'
            AND d.transport = 'broker'
            AND d.available_at <= c.now
            AND NOT EXISTS (
              SELECT 1
              FROM {schema}{prefix}outbox_queues AS p
              WHERE p.queue = d.queue
                AND p.paused_at IS NOT NULL)
          ORDER BY d.available_at, d.id
          LIMIT 1) AS h
          INNER JOIN {schema}{prefix}outbox_queues AS q ON q.queue = h.queue
        WHERE q.rate_limit IS NOT NULL) AS n
    WHERE n.next_at > c.now) AS next_at
FROM (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now OFFSET 0) AS c;

-- name: jobs_start
-- Gives the dispatch $4 of delivery $3, of job $5, to worker $2, and returns it as a task; with $6
-- also when that worker has started it already. No row: see jobs_get. Primary key.
-- Only here: works on sets; SQLite goes row by row.
WITH started AS (
  UPDATE {schema}{prefix}outbox_deliveries AS d
  SET worker = $2::uuid
  FROM (
    SELECT coalesce($1::timestamptz, clock_timestamp()) AS now, 'dispatched' AS status
    OFFSET 0) AS c
  WHERE d.id = $3::uuid
    AND d.status = c.status
    AND d.dispatch_id = $4::uuid
    AND d.job = $5::text
    AND (d.worker IS NULL OR ($6::boolean AND d.worker = $2::uuid))
    AND EXISTS (
      SELECT 1
      FROM {schema}{prefix}outbox_workers AS w
      WHERE w.id = $2::uuid
        AND w.state IN ('running', 'quiet', 'stopping'))
  RETURNING
    d.id, d.event_seq, d.event_id, d.route, d.job, d.queue, d.attempts, d.retry_delays,
    d.timeout_ms, d.timeout_limit_ms, d.on_worker_death, d.max_deaths, d.deaths, d.snoozes,
    d.interruptions, d.cancel_requested_at IS NOT NULL AS cancel_requested, d.hooks, d.dispatch_id,
    c.now, d.delivery_timeout_at, d.checkpoint)
SELECT
  t.id, t.event_seq, t.event_id, t.route, t.job, t.queue, t.attempts, t.retry_delays,
  t.timeout_ms, t.timeout_limit_ms, t.on_worker_death, t.max_deaths, t.deaths, t.snoozes,
  t.interruptions, t.cancel_requested, t.hooks, t.dispatch_id, t.now, t.delivery_timeout_at,
  t.checkpoint, e.seq, e.id AS event_uuid, e.aggregate_type, e.aggregate_id, e.aggregate_version,
  e.type, e.payload, e.payload_bytes, e.content_type, e.headers, e.created_at, e.available_at, e.slot
FROM started AS t
  INNER JOIN {schema}{prefix}outbox_events AS e ON e.seq = t.event_seq;

-- name: jobs_get
-- What became of these deliveries: who has what. Primary key.
-- Only here: works on sets; SQLite goes row by row.
SELECT d.id, d.status, d.dispatch_id, d.job, d.worker, d.result,
  d.cancel_requested_at IS NOT NULL AS cancel_requested
FROM {schema}{prefix}outbox_deliveries AS d
WHERE d.id = ANY ($1::uuid[]);

-- name: jobs_record
-- Ends the dispatches that are still running, and no others (compare-and-set): returns those.
-- Pending again, a row keeps its dispatch and its result, so that the same end told twice is known;
-- one that a person wants cancelled does not become pending. Primary key.
-- Only here: works on sets; SQLite goes row by row.
UPDATE {schema}{prefix}outbox_deliveries AS d
SET status = n.status,
  attempts = n.attempts,
  deaths = n.deaths,
  snoozes = n.snoozes,
  interruptions = n.interruptions,
  available_at = CASE
    WHEN n.status = 'pending' THEN c.now + n.available_in_ms * interval '1 ms'
    ELSE d.available_at
  END,
  dispatched_at = CASE WHEN n.status <> 'pending' THEN d.dispatched_at END,
  delivery_timeout_at = NULL,
  finished_at = CASE WHEN n.status <> 'pending' THEN c.now END,
  worker = CASE WHEN n.status <> 'pending' THEN d.worker END,
  serial_slot = NULL,
  failure_code = n.failure_code,
  failure_detail = n.failure_detail,
  result = n.result
FROM unnest(
    $2::uuid[], $3::uuid[], $4::text[], $5::integer[], $6::integer[], $7::integer[],
    $8::integer[], $9::bigint[], $10::text[], $11::text[], $12::text[], $13::boolean[]) AS n (
    id, dispatch_id, status, attempts, deaths, snoozes, interruptions, available_in_ms,
    failure_code, failure_detail, result, unless_started)
  CROSS JOIN (
    SELECT coalesce($1::timestamptz, clock_timestamp()) AS now, 'dispatched' AS status
    OFFSET 0) AS c
WHERE d.id = n.id
  AND d.status = c.status
  AND d.dispatch_id = n.dispatch_id
  AND (d.worker IS NULL OR NOT n.unless_started)
  AND (d.cancel_requested_at IS NULL OR n.status <> 'pending')
RETURNING d.dispatch_id;

-- name: jobs_keep_failures
-- Joins failures to the histories of their jobs, of which the latest $8 stay. $2 delivery, $3
-- dispatch, $4 attempt, $5 code, $6 detail, $7 worker of each. In the transaction in which jobs_record
-- has applied these ends, and these only. Primary key.
WITH kept AS (
  INSERT INTO {schema}{prefix}outbox_job_failures (
    delivery_id, dispatch_id, attempt, failed_at, code, detail, worker)
  SELECT n.delivery_id, n.dispatch_id, n.attempt, c.now, n.code, n.detail, n.worker
  FROM unnest($2::uuid[], $3::uuid[], $4::integer[], $5::text[], $6::text[], $7::uuid[]) AS n (
      delivery_id, dispatch_id, attempt, code, detail, worker)
    CROSS JOIN (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now) AS c
  RETURNING delivery_id, attempt)
DELETE FROM {schema}{prefix}outbox_job_failures AS f
USING kept AS k
WHERE f.delivery_id = k.delivery_id
  AND f.attempt <= k.attempt - $8::integer;

-- name: jobs_tell_unordered
-- Events of hooks take no lock of their aggregate in this transaction: an application that holds it
-- would keep the ends of all jobs of a worker from being recorded. No table.
-- Only here: SQLite has one writer at a time.
SELECT set_config('postrider.ordering', 'off', true);

-- name: jobs_touch
-- Writes what a running attempt says, while it is current. An extension counts from now, ends at the
-- route's limit and takes no time away. $2 delivery, $3 dispatch, $4 extension in milliseconds, $5
-- percent, $6 note, $7 checkpoint; null leaves as it is. Primary key.
-- Only here: works on sets; SQLite goes row by row.
UPDATE {schema}{prefix}outbox_deliveries AS d
SET delivery_timeout_at = greatest(
    d.delivery_timeout_at,
    least(
      c.now + $4::bigint * interval '1 ms',
      CASE
        WHEN $4::bigint IS NOT NULL THEN d.dispatched_at + d.timeout_limit_ms * interval '1 ms'
      END)),
  percent = coalesce($5::integer, d.percent),
  note = coalesce($6::text, d.note),
  checkpoint = coalesce($7::bytea, d.checkpoint)
FROM (
    SELECT coalesce($1::timestamptz, clock_timestamp()) AS now, 'dispatched' AS status
    OFFSET 0) AS c
WHERE d.id = $2::uuid
  AND d.status = c.status
  AND d.dispatch_id = $3::uuid
RETURNING d.cancel_requested_at IS NOT NULL AS cancel_requested, d.delivery_timeout_at, c.now;

-- name: jobs_attempt
-- The same for an attempt that only asks.
-- Only here: works on sets; SQLite goes row by row.
SELECT d.cancel_requested_at IS NOT NULL AS cancel_requested, d.delivery_timeout_at, c.now
FROM {schema}{prefix}outbox_deliveries AS d
  CROSS JOIN (
    SELECT coalesce($1::timestamptz, clock_timestamp()) AS now, 'dispatched' AS status
    OFFSET 0) AS c
WHERE d.id = $2::uuid
  AND d.status = c.status
  AND d.dispatch_id = $3::uuid;

-- name: jobs_lost
-- Attempts that nobody will end, $2 at most: of dead workers, then overdue ones. `holders` jumps
-- from worker to worker in outbox_jobs_worker_idx, so that those that live cost one probe each,
-- however many jobs they run. Overdue ones: outbox_deliveries_timeout_idx.
-- Only here: works on sets; SQLite goes row by row.
WITH RECURSIVE clock AS MATERIALIZED (
  SELECT coalesce($1::timestamptz, clock_timestamp()) AS now),
holders AS (
  (
    SELECT d.worker
    FROM {schema}{prefix}outbox_deliveries AS d
    WHERE d.worker IS NOT NULL
      AND d.delivery_timeout_at IS NOT NULL
    ORDER BY d.worker
    LIMIT 1)
  UNION ALL
  SELECT n.worker
  FROM holders AS h
    CROSS JOIN LATERAL (
      SELECT d.worker
      FROM {schema}{prefix}outbox_deliveries AS d
      WHERE d.worker > h.worker
        AND d.delivery_timeout_at IS NOT NULL
      ORDER BY d.worker
      LIMIT 1) AS n),
gone AS MATERIALIZED (
  SELECT h.worker
  FROM holders AS h
  WHERE NOT EXISTS (
    SELECT 1
    FROM {schema}{prefix}outbox_workers AS w
    WHERE w.id = h.worker
      AND w.state <> 'dead')),
orphans AS MATERIALIZED (
  SELECT j.id
  FROM gone AS g
    CROSS JOIN LATERAL (
      SELECT d.id
      FROM {schema}{prefix}outbox_deliveries AS d
      WHERE d.worker = g.worker
        AND d.delivery_timeout_at IS NOT NULL
      LIMIT $2::bigint) AS j
  LIMIT $2::bigint),
overdue AS MATERIALIZED (
  SELECT d.id
  FROM {schema}{prefix}outbox_deliveries AS d
  WHERE d.status = 'dispatched'
    AND d.delivery_timeout_at <= (SELECT c.now FROM clock AS c)
    AND d.kind = 'job'
    AND (d.worker IS NULL OR d.worker NOT IN (SELECT g.worker FROM gone AS g))
  ORDER BY d.delivery_timeout_at
  LIMIT $2::bigint),
lost AS MATERIALIZED (
  SELECT l.id, l.worker_died
  FROM (
    SELECT o.id, true AS worker_died
    FROM orphans AS o
    UNION ALL
    SELECT v.id, false AS worker_died
    FROM overdue AS v) AS l
  LIMIT $2::bigint)
SELECT
  d.id, d.event_seq, d.event_id, d.route, d.job, d.queue, d.attempts, d.retry_delays,
  d.timeout_ms, d.timeout_limit_ms, d.on_worker_death, d.max_deaths, d.deaths, d.snoozes,
  d.interruptions, d.cancel_requested_at IS NOT NULL AS cancel_requested, d.hooks, d.dispatch_id,
  d.worker, l.worker_died, e.type, e.aggregate_type, e.aggregate_id, e.headers
FROM lost AS l
  INNER JOIN {schema}{prefix}outbox_deliveries AS d ON d.id = l.id
  INNER JOIN {schema}{prefix}outbox_events AS e ON e.seq = d.event_seq
ORDER BY l.worker_died DESC, d.delivery_timeout_at, d.id;

-- name: jobs_channel
-- On which channel the triggers tell of jobs; NOTIFY takes names of 63 bytes at most. No table.
-- Only here: SQLite tells by the file.
SELECT 'postrider_jobs_' || md5(n.nspname || '.' || c.relname) AS channel
FROM pg_class AS c
  INNER JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = '{schema}{prefix}outbox_deliveries'::regclass;

-- name: workers_beat
-- Registers worker $2, or says that it lives. No row: it has been declared dead, or had signed off.
-- Primary key.
INSERT INTO {schema}{prefix}outbox_workers AS w (
  id, name, host, pid, version, queues, state, started_at, last_seen_at)
SELECT $2::uuid, $3::text, $4::text, $5::bigint, $6::text, to_json($7::text[])::text, $8::text,
  c.now, c.now
FROM (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now OFFSET 0) AS c
ON CONFLICT (id) DO UPDATE
SET queues = excluded.queues,
  state = excluded.state,
  last_seen_at = greatest(w.last_seen_at, excluded.last_seen_at)
WHERE w.state IN ('running', 'quiet', 'stopping')
  OR (w.state = 'stopped' AND excluded.state = 'stopped')
RETURNING w.id;

-- name: jobs_running
-- What worker $1 runs, and what of it a person wants to stop. Index: outbox_jobs_worker_idx.
SELECT d.dispatch_id, d.cancel_requested_at IS NOT NULL AS cancel_requested
FROM {schema}{prefix}outbox_deliveries AS d
WHERE d.worker = $1::uuid
  AND d.delivery_timeout_at IS NOT NULL;

-- name: workers_declare_dead
-- This start of a worker is gone. Primary key.
UPDATE {schema}{prefix}outbox_workers
SET state = 'dead'
WHERE id = $1::uuid
  AND state IN ('running', 'quiet', 'stopping')
RETURNING id;

-- name: workers_expire
-- Declares workers dead that said nothing for $2 milliseconds. Index: outbox_workers_alive_idx.
UPDATE {schema}{prefix}outbox_workers AS w
SET state = 'dead'
FROM (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now OFFSET 0) AS c
WHERE w.state IN ('running', 'quiet', 'stopping')
  AND w.last_seen_at <= c.now - $2::bigint * interval '1 ms'
RETURNING w.id;

-- name: workers_on_host
-- Workers on host $1 that have not ended, one row for each of their queues, in order. Index:
-- outbox_workers_alive_idx, all of it.
SELECT w.id, w.name, w.host, w.pid, w.version, w.state, q.queue
FROM {schema}{prefix}outbox_workers AS w
  LEFT JOIN LATERAL json_array_elements_text(w.queues::json) WITH ORDINALITY AS q (queue, place)
    ON true
WHERE w.state IN ('running', 'quiet', 'stopping')
  AND w.host = $1::text
ORDER BY w.started_at, w.id, q.place;

-- name: workers_purgeable
-- How many of those that have ended are older. The conditions of workers_purge. $1 time, $2 age in ms.
SELECT count(*)
FROM {schema}{prefix}outbox_workers AS w
WHERE w.state IN ('stopped', 'dead')
  AND w.last_seen_at <= coalesce($1::timestamptz, clock_timestamp()) - $2::bigint * interval '1 ms'
  AND NOT EXISTS (
    SELECT 1
    FROM {schema}{prefix}outbox_deliveries AS d
    WHERE d.worker = w.id
      AND d.delivery_timeout_at IS NOT NULL);

-- name: workers_purge
-- Deletes the oldest of those that have ended and hold no attempt, whose end depends on how they did.
-- Passes over what another purge has locked, and writes the audit if a person asked. Index:
-- outbox_workers_ended_idx; for attempts outbox_jobs_worker_idx. $3 rows, $4 who or null, $5 why.
WITH gone AS (
  DELETE FROM {schema}{prefix}outbox_workers
  WHERE id = ANY (ARRAY(
    SELECT w.id
    FROM {schema}{prefix}outbox_workers AS w
    WHERE w.state IN ('stopped', 'dead')
      AND w.last_seen_at
        <= coalesce($1::timestamptz, clock_timestamp()) - $2::bigint * interval '1 ms'
      AND NOT EXISTS (
        SELECT 1
        FROM {schema}{prefix}outbox_deliveries AS d
        WHERE d.worker = w.id
          AND d.delivery_timeout_at IS NOT NULL)
    ORDER BY w.last_seen_at
    LIMIT $3::bigint
    FOR UPDATE OF w SKIP LOCKED))
  RETURNING 1),
audited AS (
  INSERT INTO {schema}{prefix}postrider_audit (at, who, action, object, reason, detail)
  SELECT coalesce($1::timestamptz, clock_timestamp()), $4::text, 'purge', 'workers', $5::text,
    n.number || ' workers'
  FROM (SELECT count(*) AS number FROM gone) AS n
  WHERE n.number > 0
    AND $4::text IS NOT NULL)
SELECT count(*)
FROM gone;
