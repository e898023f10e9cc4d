-- Events: written once, read in the order of seq, marked once, deleted after their retention.
--
-- A payload stands in one of two columns. Statements that return an event give the columns from seq
-- to slot in the order of `read_event_columns`.

-- name: events_insert
-- Writes events in the order given, a tuple each; the trigger gives each its seq. Unique: id,
-- aggregate's version.
INSERT INTO {prefix}outbox_events (
  id, aggregate_type, aggregate_id, aggregate_version, type, payload, payload_bytes, content_type,
  headers, available_at)
VALUES (
  :id, :aggregate_type, :aggregate_id, :aggregate_version, :type, :payload, NULL, :content_type,
  :headers, :available_at);

-- name: events_lock_aggregates
-- Takes the locks of several aggregates in one order, as two writers that take them in the order of
-- their events would wait for each other; a tuple each. What the trigger asks for later is then held
-- already. Primary key.
-- Only here: SQLite lets one transaction write at a time.
INSERT INTO {prefix}outbox_aggregates (aggregate_hash)
VALUES (unhex(md5(:name)))
ON DUPLICATE KEY UPDATE aggregate_hash = VALUES(aggregate_hash);

-- name: events_claim
-- The next events, with payloads of at most :share bytes: of a row with a longer one the length
-- alone comes, and the caller fetches what fits by events_get.
--
-- One statement, so one snapshot, in three parts told apart by the first column:
--   0  one row, always there: the first number that the sequence has not reserved, and the time;
--   1  rows whose numbers were missing when the position went over them;
--   2  rows above the position, whether wanted or not, so that the position moves over those of
--      others and missing numbers are seen.
-- Wanted are rows of the caller's partitions that are neither routed nor held. Primary key.
SELECT
  0 AS part,
  0 AS wanted,
  0 AS length,
  s.next_not_cached_value AS seq,
  NULL AS id,
  NULL AS aggregate_type,
  NULL AS aggregate_id,
  NULL AS aggregate_version,
  NULL AS type,
  NULL AS payload,
  NULL AS content_type,
  NULL AS headers,
  CAST(coalesce(:now, utc_timestamp(6)) AS DATETIME(6)) AS created_at,
  NULL AS available_at,
  NULL AS slot
FROM {prefix}outbox_events_seq AS s
UNION ALL
(
  SELECT
    1 AS part,
    e.routed_at IS NULL
      AND e.slot MOD :partition_count IN :partitions
      AND NOT EXISTS (
        SELECT 1
        FROM {prefix}outbox_deliveries AS h
        WHERE h.event_seq = e.seq
          AND h.status = 'held') AS wanted,
    coalesce(octet_length(e.payload), octet_length(e.payload_bytes), 0) AS length,
    e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type,
    IF(coalesce(octet_length(e.payload), octet_length(e.payload_bytes), 0) <= :share, coalesce(e.payload, e.payload_bytes), NULL) AS payload, e.content_type, e.headers, e.created_at, e.available_at,
    e.slot
  FROM {prefix}outbox_events AS e FORCE INDEX (PRIMARY)
  WHERE :missing
  ORDER BY e.seq
  LIMIT :limit
)
UNION ALL
(
  SELECT
    2 AS part,
    e.routed_at IS NULL
      AND e.slot MOD :partition_count IN :partitions
      AND NOT EXISTS (
        SELECT 1
        FROM {prefix}outbox_deliveries AS h
        WHERE h.event_seq = e.seq
          AND h.status = 'held') AS wanted,
    coalesce(octet_length(e.payload), octet_length(e.payload_bytes), 0) AS length,
    e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type,
    IF(coalesce(octet_length(e.payload), octet_length(e.payload_bytes), 0) <= :share, coalesce(e.payload, e.payload_bytes), NULL) AS payload, e.content_type, e.headers, e.created_at, e.available_at,
    e.slot
  FROM {prefix}outbox_events AS e FORCE INDEX (PRIMARY)
  WHERE e.seq > :position
  ORDER BY e.seq
  LIMIT :limit
);

-- name: events_probe
-- Whether anybody writes a row with one of these numbers at this moment: then it is locked, and the
-- answer is the error of a lock that is held. Rows that are there are returned. Primary key.
-- Only here: PostgreSQL knows transactions by their xid, and SQLite has one writer.
SELECT e.seq
FROM {prefix}outbox_events AS e FORCE INDEX (PRIMARY)
WHERE e.seq BETWEEN :first AND :last
ORDER BY e.seq
LIMIT 1
LOCK IN SHARE MODE NOWAIT;

-- name: events_unrouted_below
-- Events that nobody has routed or held although everything up to :last is settled. Index:
-- outbox_events_unrouted_idx.
-- Only here: PostgreSQL knows transactions by their xid, and SQLite has one writer.
SELECT e.seq
FROM {prefix}outbox_events AS e FORCE INDEX ({prefix}outbox_events_unrouted_idx)
WHERE e.routed_at IS NULL
  AND e.seq <= :last
  AND e.slot MOD :partition_count IN :partitions
  AND NOT EXISTS (
    SELECT 1
    FROM {prefix}outbox_deliveries AS h
    WHERE h.event_seq = e.seq
      AND h.status = 'held')
ORDER BY e.seq
LIMIT :limit;

-- name: events_get
-- Events by their numbers, with all of their payloads. Primary key.
-- Only here: PostgreSQL weighs payloads inside the server; SQLite goes row by row.
SELECT
    e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type,
    coalesce(e.payload, e.payload_bytes) AS payload, e.content_type, e.headers, e.created_at, e.available_at,
    e.slot
FROM {prefix}outbox_events AS e FORCE INDEX (PRIMARY)
WHERE e.seq IN :seqs
ORDER BY e.seq;

-- name: events_held
-- Events that wait for a valid route, with the id of the row that holds them. Index:
-- outbox_deliveries_status_idx, then the primary key.
SELECT
    e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type,
    coalesce(e.payload, e.payload_bytes) AS payload, e.content_type, e.headers, e.created_at, e.available_at,
    e.slot,
    d.id AS delivery_id
FROM {prefix}outbox_deliveries AS d
  INNER JOIN {prefix}outbox_events AS e ON e.seq = d.event_seq
WHERE d.status = 'held'
  AND d.event_seq > :after
  AND d.slot MOD :partition_count IN :partitions
ORDER BY d.event_seq
LIMIT :limit;

-- name: events_last_seq
-- How far the table reaches; 0 when it is empty. Primary key.
SELECT coalesce(max(seq), 0)
FROM {prefix}outbox_events;

-- name: events_lock_unrouted
-- Locks these events and tells which of them are not routed yet. The primary key is forced: over the
-- index of unrouted ones it would wait for writers. Primary key.
-- Only here: PostgreSQL tells by RETURNING; SQLite goes row by row.
SELECT e.seq
FROM {prefix}outbox_events AS e FORCE INDEX (PRIMARY)
WHERE e.seq IN :seqs
  AND e.routed_at IS NULL
ORDER BY e.seq
FOR UPDATE;

-- name: events_set_routed
-- Marks events that events_lock_unrouted has found and locked. Primary key.
UPDATE {prefix}outbox_events FORCE INDEX (PRIMARY)
SET routed_at = :now
WHERE seq IN :seqs
  AND routed_at IS NULL;

-- name: events_count
-- For `status`. Index: outbox_events_unrouted_idx; counts all over the smallest one.
SELECT
  (SELECT count(*) FROM {prefix}outbox_events),
  (SELECT count(*) FROM {prefix}outbox_events WHERE routed_at IS NULL),
  (
    SELECT e.created_at
    FROM {prefix}outbox_events AS e
    WHERE e.routed_at IS NULL
    ORDER BY e.seq
    LIMIT 1);

-- name: events_slice
-- How far the next events reach, how many they are, and whether one of them is old enough to look
-- further: no event is older than its own insert. Primary key; never touches a payload.
-- Only here: PostgreSQL does all of a slice in one statement.
SELECT coalesce(max(s.seq), :after),
  count(*),
  coalesce(min(least(s.created_at, coalesce(s.routed_at, s.created_at))) <= :before, 0)
FROM (
  SELECT e.seq, e.created_at, e.routed_at
  FROM {prefix}outbox_events AS e FORCE INDEX (PRIMARY)
  WHERE e.seq > :after
  ORDER BY e.seq
  LIMIT :limit) AS s;

-- name: events_purgeable
-- Which events of a slice are routed, completed long enough ago, and have nothing open or dead.
-- Primary key; per event the unique key on (event_seq, route, generation). With :lock they are
-- locked, those that somebody else has locked are passed over, and the statement is asked once more:
-- from then on nobody can give these events a delivery.
SELECT e.seq
FROM {prefix}outbox_events AS e FORCE INDEX (PRIMARY)
WHERE e.seq > :after
  AND e.seq <= :last
  AND e.routed_at <= :before
  AND NOT EXISTS (
    SELECT 1
    FROM {prefix}outbox_deliveries AS d
    WHERE d.event_seq = e.seq
      AND (
        d.status IN ('held', 'pending', 'dispatched')
        OR (d.status = 'failed' AND d.current = 1)
        OR d.finished_at > :before))
ORDER BY e.seq
:lock;

-- name: events_delete
-- The events of a slice that events_purgeable has locked, behind deliveries_delete. Primary key.
-- Only here: PostgreSQL does all of a slice in one statement.
DELETE e
FROM {prefix}outbox_events AS e FORCE INDEX (PRIMARY)
WHERE e.seq IN :seqs;

-- name: events_find
-- The number of an event. Unique index on id.
SELECT e.seq
FROM {prefix}outbox_events AS e
WHERE e.id = :id;

-- name: events_bound
-- The last row that a search for people looks at: the one :examine rows behind :after. Primary key.
SELECT e.seq
FROM {prefix}outbox_events AS e FORCE INDEX (PRIMARY)
WHERE e.seq < :after
ORDER BY e.seq DESC
LIMIT 1 OFFSET :examine;

-- name: events_list
-- For people: rows below :after and from :floor on that meet every condition given, newest first.
-- With :routed given (0 or 1) held ones are left out. Primary key.
SELECT
  e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type, e.content_type,
  coalesce(octet_length(e.payload), octet_length(e.payload_bytes), 0) AS payload_bytes,
  e.created_at, e.available_at, e.routed_at,
  EXISTS (
    SELECT 1
    FROM {prefix}outbox_deliveries AS d
    WHERE d.event_seq = e.seq
      AND d.status = 'held') AS held
FROM {prefix}outbox_events AS e FORCE INDEX (PRIMARY)
WHERE e.seq < :after
  AND e.seq >= :floor
  AND (:type IS NULL OR e.type = :type)
  AND (
    :aggregate_type IS NULL
    OR (e.aggregate_type = :aggregate_type AND e.aggregate_id = :aggregate_id))
  AND (:since IS NULL OR e.created_at >= :since)
  AND (:until IS NULL OR e.created_at <= :until)
  AND (
    :routed IS NULL
    OR ((e.routed_at IS NOT NULL) = :routed
      AND NOT EXISTS (
        SELECT 1
        FROM {prefix}outbox_deliveries AS d
        WHERE d.event_seq = e.seq
          AND d.status = 'held')))
ORDER BY e.seq DESC
LIMIT :limit;

-- name: events_list_held
-- The same for held events. Index: outbox_deliveries_status_idx, then the primary key.
SELECT
  e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type, e.content_type,
  coalesce(octet_length(e.payload), octet_length(e.payload_bytes), 0) AS payload_bytes,
  e.created_at, e.available_at, e.routed_at,
  1 AS held
FROM {prefix}outbox_deliveries AS d
  INNER JOIN {prefix}outbox_events AS e ON e.seq = d.event_seq
WHERE d.status = 'held'
  AND d.event_seq < :after
  AND d.event_seq >= :floor
  AND (:type IS NULL OR e.type = :type)
  AND (
    :aggregate_type IS NULL
    OR (e.aggregate_type = :aggregate_type AND e.aggregate_id = :aggregate_id))
  AND (:since IS NULL OR e.created_at >= :since)
  AND (:until IS NULL OR e.created_at <= :until)
ORDER BY d.event_seq DESC
LIMIT :limit;

-- name: events_show
-- One event; its payload only when it is asked for. Unique index on id.
SELECT
  e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type, e.content_type,
  coalesce(octet_length(e.payload), octet_length(e.payload_bytes), 0) AS payload_bytes,
  e.created_at, e.available_at, e.routed_at,
  EXISTS (
    SELECT 1
    FROM {prefix}outbox_deliveries AS d
    WHERE d.event_seq = e.seq
      AND d.status = 'held') AS held,
  e.headers,
  IF(:with_payload, coalesce(e.payload, e.payload_bytes), NULL) AS payload
FROM {prefix}outbox_events AS e
WHERE e.id = :id;
