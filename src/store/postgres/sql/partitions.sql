-- The rows of partitions: lease, token, mark, generation, suspicion. Judged by clock_timestamp(), as
-- now() stands still while a transaction waits for a lock.

-- name: partitions_lease
-- Renews what the owner holds, takes free partitions and those whose lease ran out until there are
-- $4 altogether, and returns all rows as they are then. Rows that another relay is taking at this
-- moment are passed over. A lease of the owner that ran out and that nobody took goes on under its
-- token, unless $6: the owner had it from another server; then it is gained anew. A token that is
-- gained is above $7, too. A lease that ends later than any may last (10 min) was written before the
-- clock was set back, and has run out. $5 is the key of the advisory lock that this session holds,
-- if it holds one: whoever can share the lock of an owner knows that its session is gone. Taking
-- what was not released counts a crash of its owner. Primary key.
-- Only here: a set of partitions; SQLite has one.
WITH clock AS MATERIALIZED (
  SELECT coalesce($1::timestamptz, clock_timestamp()) AS now),
held AS MATERIALIZED (
  SELECT p.partition, $6::boolean AS gained
  FROM {schema}{prefix}outbox_partitions AS p
  WHERE p.owner = $2::text
  ORDER BY p.partition
  FOR NO KEY UPDATE),
gone AS MATERIALIZED (
  SELECT o.session_lock
  FROM (
    SELECT DISTINCT p.session_lock
    FROM {schema}{prefix}outbox_partitions AS p
    WHERE p.owner <> $2::text
      AND p.session_lock IS NOT NULL
      AND p.session_lock IS DISTINCT FROM $5::integer
      AND $4::integer > 0) AS o
  WHERE pg_try_advisory_xact_lock_shared(1349743990, o.session_lock)),
free AS MATERIALIZED (
  SELECT p.partition, true AS gained
  FROM {schema}{prefix}outbox_partitions AS p
  WHERE p.owner IS NULL
    OR (
      p.owner <> $2::text
      AND (
        p.leased_until <= (SELECT c.now FROM clock AS c)
        OR p.leased_until > (SELECT c.now + interval '10 min' FROM clock AS c)
        OR p.session_lock IN (SELECT g.session_lock FROM gone AS g)))
  ORDER BY p.partition
  LIMIT greatest($4::integer - (SELECT count(*) FROM held), 0)
  FOR NO KEY UPDATE SKIP LOCKED),
leased AS (
  UPDATE {schema}{prefix}outbox_partitions AS p
  SET owner = $2::text,
    token = CASE WHEN n.gained THEN greatest(p.token, $7::bigint) + 1 ELSE p.token END,
    leased_until = (SELECT c.now FROM clock AS c) + $3::bigint * interval '1 ms',
    crashes = p.crashes + CASE WHEN n.gained AND p.owner <> $2::text THEN 1 ELSE 0 END,
    session_lock = $5::integer
  FROM (
    SELECT h.partition, h.gained
    FROM held AS h
    UNION ALL
    SELECT f.partition, f.gained
    FROM free AS f) AS n
  WHERE p.partition = n.partition
  RETURNING p.partition, p.owner, p.token, p.leased_until, p.position, p.in_flight,
    p.server_identity, p.generation, p.crashes, p.probe_seq, n.gained)
SELECT
  c.now,
  p.partition,
  coalesce(l.owner, p.owner) AS owner,
  coalesce(l.token, p.token) AS token,
  coalesce(l.leased_until, p.leased_until) AS leased_until,
  CASE WHEN l.partition IS NULL THEN p.position ELSE l.position END AS position,
  CASE WHEN l.partition IS NULL THEN p.in_flight ELSE l.in_flight END AS in_flight,
  CASE WHEN l.partition IS NULL THEN p.server_identity ELSE l.server_identity END
    AS server_identity,
  coalesce(l.generation, p.generation) AS generation,
  l.gained,
  l.crashes,
  l.probe_seq
FROM {schema}{prefix}outbox_partitions AS p
  CROSS JOIN clock AS c
  LEFT JOIN leased AS l ON l.partition = p.partition
ORDER BY p.partition;

-- name: partitions_list
-- All rows and the time, for `status`. Primary key.
SELECT
  coalesce($1::timestamptz, clock_timestamp()) AS now,
  p.partition,
  p.owner,
  p.leased_until,
  p.crashes,
  p.probe_seq
FROM {schema}{prefix}outbox_partitions AS p
ORDER BY p.partition;

-- name: partitions_count
-- How many partitions the schema has. Primary key.
-- Only here: a set of partitions; SQLite has one.
SELECT count(*)
FROM {schema}{prefix}outbox_partitions AS p;

-- name: partitions_release
-- Ends leases; tokens and marks stay, and nobody has died. The rows are locked in their order.
-- Primary key.
UPDATE {schema}{prefix}outbox_partitions AS p
SET owner = NULL,
  leased_until = NULL,
  crashes = 0,
  probe_seq = NULL,
  session_lock = NULL
FROM (
  SELECT o.partition
  FROM {schema}{prefix}outbox_partitions AS o
    INNER JOIN unnest($1::integer[], $2::bigint[]) AS n (partition, token)
      ON n.partition = o.partition AND n.token = o.token
  ORDER BY o.partition
  FOR NO KEY UPDATE OF o) AS held
WHERE p.partition = held.partition;

-- name: partitions_fence
-- Locks the rows of a settle and ends its transaction with PR001 when one of them is not the
-- caller's any more. $3: the transaction will write to these rows. Primary key.
-- Only here: a set of partitions; SQLite has one.
SELECT {schema}{prefix}outbox_fence($1::integer[], $2::bigint[], $3::boolean);

-- name: partitions_lock
-- Locks all rows in their order: what a person's change of deliveries begins with, as a settle
-- locks these rows before deliveries too. Primary key.
-- Only here: a set of partitions; SQLite has one.
SELECT p.partition
FROM {schema}{prefix}outbox_partitions AS p
ORDER BY p.partition
FOR NO KEY UPDATE;

-- name: partitions_store_mark
-- How far everything is settled. The fence holds these rows already. Primary key.
UPDATE {schema}{prefix}outbox_partitions
SET position = $2::bigint,
  in_flight = $3::text,
  server_identity = $4::text
WHERE partition = ANY ($1::integer[]);

-- name: partitions_set_suspicion
-- How often owners died in a row, and which event is being sent alone. The fence holds these rows
-- already. Primary key.
UPDATE {schema}{prefix}outbox_partitions AS p
SET crashes = s.crashes,
  probe_seq = s.probe_seq
FROM unnest($1::integer[], $2::integer[], $3::bigint[]) AS s (partition, crashes, probe_seq)
WHERE p.partition = s.partition;
