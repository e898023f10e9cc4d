-- Events: written once, read in the order of seq, marked once, deleted after their retention.
--
-- A payload stands in one of two columns. Statements that return an event give the columns from seq
-- to slot in the order of `read_event_columns`.

-- name: events_insert
-- Writes events in the order given; the trigger gives each its seq. What the writer leaves open is
-- made by the column's default. Unique: id, aggregate's version.
INSERT INTO {schema}{prefix}outbox_events (
  id, aggregate_type, aggregate_id, aggregate_version, type, payload, payload_bytes, content_type,
  headers, available_at)
SELECT n.id, n.aggregate_type, n.aggregate_id, n.aggregate_version, n.type, n.payload,
  n.payload_bytes, n.content_type, n.headers, n.available_at
FROM unnest(
    $1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bytea[],
    $8::text[], $9::text[], $10::timestamptz[])
  WITH ORDINALITY AS n (
    id, aggregate_type, aggregate_id, aggregate_version, type, payload, payload_bytes,
    content_type, headers, available_at, position)
ORDER BY n.position;

-- name: events_lock_aggregates
-- Takes the locks of several aggregates in one order, as two writers that take them in the order of
-- their events would wait for each other. What the trigger asks for later is then held already.
-- Only here: works on sets; SQLite goes row by row.
SELECT {schema}{prefix}outbox_lock_aggregate(n.lock_key)
FROM (
  SELECT DISTINCT hashtext(a.name) AS lock_key
  FROM unnest($1::text[]) AS a (name)
  ORDER BY lock_key) AS n;

-- name: events_claim
-- The next events, with payloads of at most $10 bytes: of a row with a longer one `length` alone
-- comes, and the caller turns to events_claim_weighed. So a batch has a bound in memory for free.
--
-- One statement, so one snapshot, in three parts told apart by the first column:
--   0  one row, always there: the snapshot (in place of a payload) and the time;
--   1  rows at or below the position whose transaction was in flight when it was reached. Index:
--      outbox_events_xid_idx; `seq + 0` keeps the primary key out of a nested loop over it;
--   2  rows above the position, whether wanted or not, so that the position moves over those of
--      others. Index: the primary key. A row that nobody wants comes without its payload.
-- Wanted are rows of the caller's partitions ($7, one bit each) that are neither routed nor held;
-- whether anything is held at all is asked once, and OFFSET 0 keeps the planner from hashing all
-- held rows for the sake of one.
--
-- $1 position, $2 floor, $3 to $5 the in-flight list (from, to, floor of each entry), $6 rows,
-- $7 partitions, $8 number of partitions, $9 time, $10 bytes of one payload.
SELECT
  0 AS part,
  true AS wanted,
  0 AS length,
  NULL::bigint AS seq,
  NULL::uuid AS id,
  NULL::text AS aggregate_type,
  NULL::text AS aggregate_id,
  NULL::bigint AS aggregate_version,
  NULL::text AS type,
  pg_current_snapshot()::text AS payload,
  NULL::bytea AS payload_bytes,
  NULL::text AS content_type,
  NULL::text AS headers,
  coalesce($9::timestamptz, clock_timestamp()) AS created_at,
  NULL::timestamptz AS available_at,
  NULL::smallint AS slot
UNION ALL
(
  SELECT
    1 AS part,
    true AS wanted,
    e.length,
    e.seq,
    e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type,
    CASE WHEN e.length <= $10::bigint THEN e.payload END AS payload,
    CASE WHEN e.length <= $10::bigint THEN e.payload_bytes END AS payload_bytes,
    e.content_type,
    CASE WHEN e.length <= $10::bigint THEN e.headers END AS headers,
    e.created_at, e.available_at, e.slot
  FROM unnest($3::xid8[], $4::xid8[], $5::bigint[]) AS f (first_xid, last_xid, floor)
    CROSS JOIN LATERAL (
      SELECT
        e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type, e.payload,
        e.payload_bytes, e.content_type, e.headers, e.created_at, e.available_at, e.slot,
        coalesce(octet_length(e.payload), octet_length(e.payload_bytes), 0) AS length
      FROM {schema}{prefix}outbox_events AS e
      WHERE e.xid BETWEEN f.first_xid AND f.last_xid
        AND e.seq + 0 <= $1::bigint
        AND e.seq + 0 > greatest(f.floor, $2::bigint)
        AND e.routed_at IS NULL
        AND get_bit($7::bytea, (e.slot % $8::integer)::bigint) = 1
        AND NOT (
          (
            SELECT EXISTS (
              SELECT 1
              FROM {schema}{prefix}outbox_deliveries AS h
              WHERE h.status = 'held')
          )
          AND EXISTS (
            SELECT 1
            FROM {schema}{prefix}outbox_deliveries AS h
            WHERE h.status = 'held'
              AND h.event_seq = e.seq
            OFFSET 0))
      OFFSET 0) AS e
  ORDER BY e.seq
  LIMIT $6::integer
)
UNION ALL
(
  SELECT
    2 AS part,
    e.wanted,
    e.length,
    e.seq,
    e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type,
    CASE WHEN e.wanted AND e.length <= $10::bigint THEN e.payload END AS payload,
    CASE WHEN e.wanted AND e.length <= $10::bigint THEN e.payload_bytes END AS payload_bytes,
    e.content_type,
    CASE WHEN e.wanted AND e.length <= $10::bigint THEN e.headers END AS headers,
    e.created_at, e.available_at, e.slot
  FROM (
    SELECT
      e.*,
      coalesce(octet_length(e.payload), octet_length(e.payload_bytes), 0) AS length,
      e.routed_at IS NULL
      AND get_bit($7::bytea, (e.slot % $8::integer)::bigint) = 1
      AND NOT (
        (
          SELECT EXISTS (
            SELECT 1
            FROM {schema}{prefix}outbox_deliveries AS h
            WHERE h.status = 'held')
        )
        AND EXISTS (
          SELECT 1
          FROM {schema}{prefix}outbox_deliveries AS h
          WHERE h.status = 'held'
            AND h.event_seq = e.seq
          OFFSET 0)) AS wanted
    FROM {schema}{prefix}outbox_events AS e
    WHERE e.seq > $1::bigint
    ORDER BY e.seq
    LIMIT $6::integer) AS e
  ORDER BY e.seq
);

-- name: events_claim_weighed
-- As events_claim for large payloads: they come until together they exceed $10 bytes; the first one
-- comes whatever it weighs. Dearer by a window over the batch.
--
-- One statement, so one snapshot, in three parts told apart by the first column:
--   0  one row, always there: the snapshot (in place of a payload) and the time;
--   1  rows at or below the position whose transaction was in flight when it was reached. Index:
--      outbox_events_xid_idx; `seq + 0` keeps the primary key out of a nested loop over it;
--   2  rows above the position, whether wanted or not, so that the position moves over those of
--      others. Index: the primary key. A row that nobody wants comes without its payload.
-- Wanted are rows of the caller's partitions ($7, one bit each) that are neither routed nor held;
-- whether anything is held at all is asked once, and OFFSET 0 keeps the planner from hashing all
-- held rows for the sake of one.
--
-- $1 position, $2 floor, $3 to $5 the in-flight list (from, to, floor of each entry), $6 rows,
-- $7 partitions, $8 number of partitions, $9 time, $10 bytes of all payloads.
-- Only here: works on sets; SQLite goes row by row.
SELECT
  0 AS part,
  true AS wanted,
  0 AS length,
  NULL::bigint AS seq,
  NULL::uuid AS id,
  NULL::text AS aggregate_type,
  NULL::text AS aggregate_id,
  NULL::bigint AS aggregate_version,
  NULL::text AS type,
  pg_current_snapshot()::text AS payload,
  NULL::bytea AS payload_bytes,
  NULL::text AS content_type,
  NULL::text AS headers,
  coalesce($9::timestamptz, clock_timestamp()) AS created_at,
  NULL::timestamptz AS available_at,
  NULL::smallint AS slot
UNION ALL
(
  SELECT
    1 AS part,
    true AS wanted,
    w.length,
    w.seq,
    w.id, w.aggregate_type, w.aggregate_id, w.aggregate_version, w.type,
    CASE WHEN w.before = 0 OR w.before + w.length <= $10::bigint THEN w.payload END AS payload,
    CASE WHEN w.before = 0 OR w.before + w.length <= $10::bigint THEN w.payload_bytes END AS payload_bytes,
    w.content_type,
    w.headers,
    w.created_at, w.available_at, w.slot
  FROM (
    SELECT
      e.*,
      sum(e.length) OVER (ORDER BY e.seq ROWS UNBOUNDED PRECEDING) - e.length AS before
    FROM (
      SELECT e.*
      FROM unnest($3::xid8[], $4::xid8[], $5::bigint[]) AS f (first_xid, last_xid, floor)
        CROSS JOIN LATERAL (
          SELECT
            e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type, e.payload,
            e.payload_bytes, e.content_type, e.headers, e.created_at, e.available_at, e.slot,
            coalesce(octet_length(e.payload), octet_length(e.payload_bytes), 0) AS length
          FROM {schema}{prefix}outbox_events AS e
          WHERE e.xid BETWEEN f.first_xid AND f.last_xid
            AND e.seq + 0 <= $1::bigint
            AND e.seq + 0 > greatest(f.floor, $2::bigint)
            AND e.routed_at IS NULL
            AND get_bit($7::bytea, (e.slot % $8::integer)::bigint) = 1
            AND NOT (
              (
                SELECT EXISTS (
                  SELECT 1
                  FROM {schema}{prefix}outbox_deliveries AS h
                  WHERE h.status = 'held')
              )
              AND EXISTS (
                SELECT 1
                FROM {schema}{prefix}outbox_deliveries AS h
                WHERE h.status = 'held'
                  AND h.event_seq = e.seq
                OFFSET 0))
          OFFSET 0) AS e
      ORDER BY e.seq
      LIMIT $6::integer) AS e) AS w
  ORDER BY w.seq
)
UNION ALL
(
  SELECT
    2 AS part,
    w.wanted,
    w.length,
    w.seq,
    w.id, w.aggregate_type, w.aggregate_id, w.aggregate_version, w.type,
    CASE WHEN w.wanted AND (w.before = 0 OR w.before + w.length <= $10::bigint) THEN w.payload END AS payload,
    CASE WHEN w.wanted AND (w.before = 0 OR w.before + w.length <= $10::bigint) THEN w.payload_bytes
    END AS payload_bytes,
    w.content_type,
    CASE WHEN w.wanted THEN w.headers END AS headers,
    w.created_at, w.available_at, w.slot
  FROM (
    SELECT
      e.*,
      sum(CASE WHEN e.wanted THEN e.length ELSE 0 END)
        OVER (ORDER BY e.seq ROWS UNBOUNDED PRECEDING)
        - CASE WHEN e.wanted THEN e.length ELSE 0 END AS before
    FROM (
      SELECT
        e.*,
        coalesce(octet_length(e.payload), octet_length(e.payload_bytes), 0) AS length,
        e.routed_at IS NULL
        AND get_bit($7::bytea, (e.slot % $8::integer)::bigint) = 1
        AND NOT (
          (
            SELECT EXISTS (
              SELECT 1
              FROM {schema}{prefix}outbox_deliveries AS h
              WHERE h.status = 'held')
          )
          AND EXISTS (
            SELECT 1
            FROM {schema}{prefix}outbox_deliveries AS h
            WHERE h.status = 'held'
              AND h.event_seq = e.seq
            OFFSET 0)) AS wanted
      FROM {schema}{prefix}outbox_events AS e
      WHERE e.seq > $1::bigint
      ORDER BY e.seq
      LIMIT $6::integer) AS e) AS w
  ORDER BY w.seq
);

-- name: events_held
-- Events that wait for a valid route, with the id of the row that holds them. Index:
-- outbox_deliveries_held_idx, then the primary key. The first row is the time.
SELECT
  0 AS part,
  NULL::bigint AS seq,
  NULL::uuid AS id,
  NULL::text AS aggregate_type,
  NULL::text AS aggregate_id,
  NULL::bigint AS aggregate_version,
  NULL::text AS type,
  NULL::text AS payload,
  NULL::bytea AS payload_bytes,
  NULL::text AS content_type,
  NULL::text AS headers,
  coalesce($4::timestamptz, clock_timestamp()) AS created_at,
  NULL::timestamptz AS available_at,
  NULL::smallint AS slot,
  NULL::uuid AS delivery_id
UNION ALL
(
  SELECT 1 AS part, e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type,
    e.payload, e.payload_bytes, e.content_type, e.headers, e.created_at, e.available_at, e.slot,
    d.id AS delivery_id
  FROM {schema}{prefix}outbox_deliveries AS d
    INNER JOIN {schema}{prefix}outbox_events AS e ON e.seq = d.event_seq
  WHERE d.status = 'held'
    AND d.event_seq > $1::bigint
    AND get_bit($2::bytea, (d.slot % $3::integer)::bigint) = 1
  ORDER BY d.event_seq
  LIMIT $5::integer
);

-- name: events_last_seq
-- The last number given out; asked when a mark comes from another server. The sequence.
SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END
FROM {schema}{prefix}outbox_events_seq AS s;

-- name: events_set_routed
-- Marks events, each once: what is not returned was marked before. $1 and $2 are the first and last
-- of each run of consecutive numbers: looking up a run costs as much as looking up one event.
-- Primary key.
UPDATE {schema}{prefix}outbox_events AS e
SET routed_at = coalesce($3::timestamptz, clock_timestamp())
FROM unnest($1::bigint[], $2::bigint[]) AS r (first_seq, last_seq)
WHERE e.seq BETWEEN r.first_seq AND r.last_seq
  AND e.routed_at IS NULL
RETURNING e.seq;

-- name: events_count
-- For `status`. Reads the table once.
SELECT
  coalesce($1::timestamptz, clock_timestamp()) AS now,
  count(*) AS total,
  count(*) FILTER (WHERE e.routed_at IS NULL) AS unrouted,
  min(e.created_at) FILTER (WHERE e.routed_at IS NULL) AS oldest_unrouted
FROM {schema}{prefix}outbox_events AS e;

-- name: events_purgeable
-- How many events of a slice events_purge would delete. The same parameters, conditions, indexes
-- and columns.
WITH clock AS MATERIALIZED (
  SELECT c.now, c.now - $2::bigint * interval '1 ms' AS before
  FROM (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now) AS c),
slice AS MATERIALIZED (
  SELECT e.seq, least(e.created_at, e.routed_at) AS oldest
  FROM {schema}{prefix}outbox_events AS e
  WHERE e.seq > $3::bigint
  ORDER BY e.seq
  LIMIT $4::bigint),
old AS (
  SELECT e.seq
  FROM {schema}{prefix}outbox_events AS e
  WHERE e.seq > $3::bigint
    AND e.seq <= (SELECT max(s.seq) FROM slice AS s)
    AND e.routed_at <= (SELECT c.before FROM clock AS c)
    AND NOT EXISTS (
      SELECT 1
      FROM {schema}{prefix}outbox_deliveries AS d
      WHERE d.event_seq = e.seq
        AND (
          d.status IN ('held', 'pending', 'dispatched')
          OR (d.status = 'failed' AND d.current)
          OR d.finished_at > (SELECT c.before FROM clock AS c))
      OFFSET 0))
SELECT
  (SELECT count(*) FROM old) AS number,
  coalesce((SELECT max(s.seq) FROM slice AS s), $3::bigint) AS last,
  (
    SELECT count(*) = $4::bigint AND min(s.oldest) <= min(c.before)
    FROM slice AS s
      CROSS JOIN clock AS c) IS TRUE AS more;

-- name: events_purge
-- Deletes the events of a slice that are routed, completed long enough ago, and have nothing open or
-- dead, with their deliveries, in one statement; the foreign key backs it. What another purge has
-- locked is passed over. Answers how many, how far the slice reached, and whether a further one may
-- find something: no event is older than its own insert. Writes the audit if a person asked.
-- Primary key in order; per event the unique index on (event_seq, route, generation). OFFSET and
-- the arrays keep it so: a plan that does not know how small a slice is would join whole tables.
-- $1 time, $2 age in ms, $3 seq before the slice, $4 its rows, $5 who or null, $6 why.
-- Only here: works on sets; SQLite has several statements.
WITH clock AS MATERIALIZED (
  SELECT c.now, c.now - $2::bigint * interval '1 ms' AS before
  FROM (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now) AS c),
slice AS MATERIALIZED (
  SELECT e.seq, least(e.created_at, e.routed_at) AS oldest
  FROM {schema}{prefix}outbox_events AS e
  WHERE e.seq > $3::bigint
  ORDER BY e.seq
  LIMIT $4::bigint),
old AS MATERIALIZED (
  SELECT e.seq
  FROM {schema}{prefix}outbox_events AS e
  WHERE e.seq > $3::bigint
    AND e.seq <= (SELECT max(s.seq) FROM slice AS s)
    AND e.routed_at <= (SELECT c.before FROM clock AS c)
    AND NOT EXISTS (
      SELECT 1
      FROM {schema}{prefix}outbox_deliveries AS d
      WHERE d.event_seq = e.seq
        AND (
          d.status IN ('held', 'pending', 'dispatched')
          OR (d.status = 'failed' AND d.current)
          OR d.finished_at > (SELECT c.before FROM clock AS c))
      OFFSET 0)
  ORDER BY e.seq
  FOR UPDATE OF e SKIP LOCKED),
deliveries AS (
  DELETE FROM {schema}{prefix}outbox_deliveries AS d
  WHERE d.event_seq = ANY (ARRAY(SELECT o.seq FROM old AS o))),
events AS (
  DELETE FROM {schema}{prefix}outbox_events AS e
  WHERE e.seq = ANY (ARRAY(SELECT o.seq FROM old AS o))
  RETURNING e.seq),
audited AS (
  INSERT INTO {schema}{prefix}postrider_audit (at, who, action, object, reason, detail)
  SELECT c.now, $5::text, 'purge', 'events', $6::text, n.number || ' events'
  FROM (SELECT count(*) AS number FROM events) AS n
    CROSS JOIN clock AS c
  WHERE n.number > 0
    AND $5::text IS NOT NULL)
SELECT
  (SELECT count(*) FROM events) AS number,
  coalesce((SELECT max(s.seq) FROM slice AS s), $3::bigint) AS last,
  (
    SELECT count(*) = $4::bigint AND min(s.oldest) <= min(c.before)
    FROM slice AS s
      CROSS JOIN clock AS c) IS TRUE AS more;

-- name: events_find
-- The number of an event. Unique index on id.
SELECT e.seq
FROM {schema}{prefix}outbox_events AS e
WHERE e.id = $1::uuid;

-- name: events_bound
-- The last row that a search for people looks at: the one $2 rows behind $1. Primary key.
SELECT e.seq
FROM {schema}{prefix}outbox_events AS e
WHERE e.seq < $1::bigint
ORDER BY e.seq DESC
OFFSET $2::bigint
LIMIT 1;

-- name: events_list
-- For people: rows below $1 and from $2 on that meet every condition given (null: any), newest
-- first. $3 type, $4 and $5 aggregate, $6 and $7 ages in milliseconds, $8 time, $9 rows, $10 whether
-- routed or not; then held ones are left out. Primary key.
SELECT
  e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type, e.content_type,
  coalesce(octet_length(e.payload), octet_length(e.payload_bytes), 0)::bigint AS payload_bytes,
  e.created_at, e.available_at, e.routed_at,
  h.held
FROM {schema}{prefix}outbox_events AS e
  CROSS JOIN LATERAL (
    SELECT EXISTS (
      SELECT 1
      FROM {schema}{prefix}outbox_deliveries AS d
      WHERE d.status = 'held'
        AND d.event_seq = e.seq) AS held
    OFFSET 0) AS h
WHERE e.seq < $1::bigint
  AND e.seq >= $2::bigint
  AND ($3::text IS NULL OR e.type = $3::text)
  AND ($4::text IS NULL OR (e.aggregate_type = $4::text AND e.aggregate_id = $5::text))
  AND (
    $6::bigint IS NULL
    OR e.created_at
      >= coalesce($8::timestamptz, clock_timestamp()) - $6::bigint * interval '1 ms')
  AND (
    $7::bigint IS NULL
    OR e.created_at
      <= coalesce($8::timestamptz, clock_timestamp()) - $7::bigint * interval '1 ms')
  AND ($10::boolean IS NULL OR ((e.routed_at IS NOT NULL) = $10::boolean AND NOT h.held))
ORDER BY e.seq DESC
LIMIT $9::bigint;

-- name: events_list_held
-- The same for held events, without $10. Index: outbox_deliveries_held_idx, then the primary key.
SELECT
  e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type, e.content_type,
  coalesce(octet_length(e.payload), octet_length(e.payload_bytes), 0)::bigint AS payload_bytes,
  e.created_at, e.available_at, e.routed_at,
  true AS held
FROM {schema}{prefix}outbox_deliveries AS d
  CROSS JOIN LATERAL (
    SELECT e.*
    FROM {schema}{prefix}outbox_events AS e
    WHERE e.seq = d.event_seq
    OFFSET 0) AS e
WHERE d.status = 'held'
  AND d.event_seq < $1::bigint
  AND d.event_seq >= $2::bigint
  AND ($3::text IS NULL OR e.type = $3::text)
  AND ($4::text IS NULL OR (e.aggregate_type = $4::text AND e.aggregate_id = $5::text))
  AND (
    $6::bigint IS NULL
    OR e.created_at
      >= coalesce($8::timestamptz, clock_timestamp()) - $6::bigint * interval '1 ms')
  AND (
    $7::bigint IS NULL
    OR e.created_at
      <= coalesce($8::timestamptz, clock_timestamp()) - $7::bigint * interval '1 ms')
ORDER BY d.event_seq DESC
LIMIT $9::bigint;

-- name: events_show
-- One event; its payload only when $2 says so. Unique index on id.
SELECT
  e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type, e.content_type,
  coalesce(octet_length(e.payload), octet_length(e.payload_bytes), 0)::bigint AS payload_bytes,
  e.created_at, e.available_at, e.routed_at,
  EXISTS (
    SELECT 1
    FROM {schema}{prefix}outbox_deliveries AS d
    WHERE d.status = 'held'
      AND d.event_seq = e.seq) AS held,
  e.headers,
  CASE WHEN $2::boolean THEN e.payload END AS payload,
  CASE WHEN $2::boolean THEN e.payload_bytes END AS payload_as_bytes
FROM {schema}{prefix}outbox_events AS e
WHERE e.id = $1::uuid;
