-- Events: written once, read in the order of seq, marked once, deleted after their retention.
--
-- Statements that return an event all give the columns of `read_event_row`, in its order. A payload
-- stands in one of two columns; available_at is brought to the fixed form if it has another.

-- name: events_insert
-- Writes one event. What the writer leaves open is made by the column's default, so the content
-- type is always given by our own library and created_at never. Unique: id, aggregate's version.
INSERT INTO {prefix}outbox_events (
  id, aggregate_type, aggregate_id, aggregate_version, type, payload, payload_bytes, content_type,
  headers, available_at)
VALUES (
  :id, :aggregate_type, :aggregate_id, :aggregate_version, :type, :payload, :payload_bytes,
  :content_type, :headers, :available_at);

-- name: events_claim
-- The next events that are neither routed nor held. Index: outbox_events_unrouted, and for the
-- held rows outbox_deliveries_held. The caller stops reading at its bound of bytes.
SELECT e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type,
  coalesce(e.payload, e.payload_bytes) AS payload, e.content_type, e.headers, e.created_at,
  CASE
    WHEN e.available_at GLOB '????-??-??T??:??:??.??????Z' THEN e.available_at
    ELSE strftime('%Y-%m-%dT%H:%M:%f', e.available_at) || '000Z'
  END AS available_at
FROM {prefix}outbox_events AS e
WHERE e.seq > :after
  AND e.routed_at IS NULL
  AND NOT EXISTS (
    SELECT 1
    FROM {prefix}outbox_deliveries AS d
    WHERE d.event_seq = e.seq
      AND d.status = 'held')
ORDER BY e.seq
LIMIT :limit;

-- name: events_held
-- Events that wait for a valid route, with the id of the row that holds them. Index:
-- outbox_deliveries_held, then the primary key.
SELECT e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type,
  coalesce(e.payload, e.payload_bytes) AS payload, e.content_type, e.headers, e.created_at,
  CASE
    WHEN e.available_at GLOB '????-??-??T??:??:??.??????Z' THEN e.available_at
    ELSE strftime('%Y-%m-%dT%H:%M:%f', e.available_at) || '000Z'
  END AS available_at,
  d.id AS delivery_id
FROM {prefix}outbox_deliveries AS d
  INNER JOIN {prefix}outbox_events AS e ON e.seq = d.event_seq
WHERE d.status = 'held'
  AND d.event_seq > :after
ORDER BY d.event_seq
LIMIT :limit;

-- name: events_get
-- The event of a delivery. Primary key.
-- Only here: row by row; PostgreSQL works on sets.
SELECT e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type,
  coalesce(e.payload, e.payload_bytes) AS payload, e.content_type, e.headers, e.created_at,
  CASE
    WHEN e.available_at GLOB '????-??-??T??:??:??.??????Z' THEN e.available_at
    ELSE strftime('%Y-%m-%dT%H:%M:%f', e.available_at) || '000Z'
  END AS available_at
FROM {prefix}outbox_events AS e
WHERE e.seq = :seq;

-- name: events_last_seq
-- How far the table reaches; 0 when it is empty. Primary key.
SELECT coalesce(max(seq), 0)
FROM {prefix}outbox_events;

-- name: events_set_routed
-- Marks one event, once: no row changes when somebody else was first. Primary key.
UPDATE {prefix}outbox_events
SET routed_at = :now
WHERE seq = :seq
  AND routed_at IS NULL;

-- name: events_count
-- For `status`. Indexes: the one of id counts all, outbox_events_unrouted the rest.
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
  coalesce(min(min(s.created_at, coalesce(s.routed_at, s.created_at))) <= :before, 0)
FROM (
  SELECT e.seq, e.created_at, e.routed_at
  FROM {prefix}outbox_events AS e
  WHERE e.seq > :after
  ORDER BY e.seq
  LIMIT :limit) AS s;

-- name: events_purgeable
-- How many events of a slice are routed, completed long enough ago, and have nothing open or dead.
-- Primary key; per event the index on (event_seq, route, generation). Takes no lock, so the deletes
-- below look again.
SELECT count(*)
FROM {prefix}outbox_events AS e
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
        OR d.finished_at > :before));

-- name: events_delete
-- The events of a slice of which no delivery is left, behind deliveries_delete. Primary key.
-- Only here: PostgreSQL does all of a slice in one statement.
DELETE FROM {prefix}outbox_events
WHERE seq > :after
  AND seq <= :last
  AND routed_at <= :before
  AND NOT EXISTS (
    SELECT 1
    FROM {prefix}outbox_deliveries AS d
    WHERE d.event_seq = {prefix}outbox_events.seq);

-- name: events_find
-- The number of an event. Unique index on id.
SELECT e.seq
FROM {prefix}outbox_events AS e
WHERE e.id = :id;

-- name: events_bound
-- The last row that a search for people looks at: the one :examine rows behind :after. Primary key.
SELECT e.seq
FROM {prefix}outbox_events AS e
WHERE e.seq < :after
ORDER BY e.seq DESC
LIMIT 1 OFFSET :examine;

-- name: events_list
-- For people: rows below :after and from :floor on that meet every condition given, newest first.
-- With :routed given (0 or 1) held ones are left out. Primary key.
SELECT
  e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type, e.content_type,
  coalesce(length(CAST(e.payload AS BLOB)), length(e.payload_bytes), 0) AS payload_bytes,
  e.created_at,
  CASE
    WHEN e.available_at GLOB '????-??-??T??:??:??.??????Z' THEN e.available_at
    ELSE strftime('%Y-%m-%dT%H:%M:%f', e.available_at) || '000Z'
  END AS available_at,
  e.routed_at,
  EXISTS (
    SELECT 1
    FROM {prefix}outbox_deliveries AS d
    WHERE d.status = 'held'
      AND d.event_seq = e.seq) AS held
FROM {prefix}outbox_events AS e
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
        WHERE d.status = 'held'
          AND d.event_seq = e.seq)))
ORDER BY e.seq DESC
LIMIT :limit;

-- name: events_list_held
-- The same for held events. Index: outbox_deliveries_held, then the primary key.
SELECT
  e.seq, e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.type, e.content_type,
  coalesce(length(CAST(e.payload AS BLOB)), length(e.payload_bytes), 0) AS payload_bytes,
  e.created_at,
  CASE
    WHEN e.available_at GLOB '????-??-??T??:??:??.??????Z' THEN e.available_at
    ELSE strftime('%Y-%m-%dT%H:%M:%f', e.available_at) || '000Z'
  END AS available_at,
  e.routed_at,
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
  coalesce(length(CAST(e.payload AS BLOB)), length(e.payload_bytes), 0) AS payload_bytes,
  e.created_at,
  CASE
    WHEN e.available_at GLOB '????-??-??T??:??:??.??????Z' THEN e.available_at
    ELSE strftime('%Y-%m-%dT%H:%M:%f', e.available_at) || '000Z'
  END AS available_at,
  e.routed_at,
  EXISTS (
    SELECT 1
    FROM {prefix}outbox_deliveries AS d
    WHERE d.status = 'held'
      AND d.event_seq = e.seq) AS held,
  e.headers,
  CASE WHEN :with_payload THEN coalesce(e.payload, e.payload_bytes) END AS payload
FROM {prefix}outbox_events AS e
WHERE e.id = :id;
