-- The rows of partitions: lease, token, mark, generation, suspicion.

-- name: partitions_list
-- All rows, and whether the session of an owner is gone: the lock that it held is free. Primary key.
SELECT p.`partition`, p.owner, p.token, p.leased_until, p.mark, p.generation, p.crashes,
  p.probe_seq,
  p.session_lock IS NOT NULL AND is_free_lock(concat('postrider_lease_', p.session_lock)) = 1
    AS gone
FROM {prefix}outbox_partitions AS p
ORDER BY p.`partition`;

-- name: partitions_count
-- How many partitions the schema has. Primary key.
-- Only here: a set of partitions; SQLite has one.
SELECT count(*)
FROM {prefix}outbox_partitions;

-- name: partitions_renew
-- Moves the ends of leases, also of those that ran out and that nobody took; the session may be
-- another one now. Primary key.
-- Only here: PostgreSQL leases all partitions in one statement.
UPDATE {prefix}outbox_partitions FORCE INDEX (PRIMARY)
SET leased_until = :leased_until,
  session_lock = :session_lock
WHERE `partition` IN :partitions
  AND owner = :owner;

-- name: partitions_free
-- Of these partitions, those that may be taken: no owner, a lease that ran out, or an owner whose
-- session is gone. A lease that ends later than any may last was written before the clock was set
-- back. Rows that another relay is taking at this moment are passed over. Primary key.
-- Only here: PostgreSQL leases all partitions in one statement.
SELECT p.`partition`
FROM {prefix}outbox_partitions AS p FORCE INDEX (PRIMARY)
WHERE p.`partition` IN :partitions
  AND (
    p.owner IS NULL
    OR p.leased_until <= :now
    OR p.leased_until > :latest_end
    OR (p.session_lock IS NOT NULL
      AND is_free_lock(concat('postrider_lease_', p.session_lock)) = 1))
ORDER BY p.`partition`
LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: partitions_take
-- Gives partitions to an owner, each with its next token; partitions_free has locked them. One that
-- its last owner has not released counts a crash; it is asked for before owner is set, as MariaDB
-- assigns from left to right. Primary key.
-- Only here: PostgreSQL leases all partitions in one statement.
UPDATE {prefix}outbox_partitions FORCE INDEX (PRIMARY)
SET crashes = crashes + (owner IS NOT NULL),
  owner = :owner,
  token = token + 1,
  leased_until = :leased_until,
  session_lock = :session_lock
WHERE `partition` IN :partitions;

-- name: partitions_release
-- Ends a lease; token and mark stay, and nobody has died. Primary key.
UPDATE {prefix}outbox_partitions
SET owner = NULL,
  leased_until = NULL,
  crashes = 0,
  probe_seq = NULL,
  session_lock = NULL
WHERE `partition` = :partition
  AND token = :token;

-- name: partitions_hold_session
-- Takes the lock that tells others that this session lives. Not while an earlier session of the same
-- relay still has it.
-- Only here: PostgreSQL does so in sql/session.sql.
SELECT get_lock(concat('postrider_lease_', :session_lock), 0);

-- name: partitions_fence
-- Locks the rows of a settle in their order, FOR UPDATE when it will write to them: two that share a
-- lock and then both want to write would wait for each other. Primary key.
-- Only here: a set of partitions; SQLite has one.
SELECT p.`partition`, p.token
FROM {prefix}outbox_partitions AS p FORCE INDEX (PRIMARY)
WHERE p.`partition` IN :partitions
  AND p.owner IS NOT NULL
ORDER BY p.`partition`
:lock;

-- name: partitions_lock
-- Locks all rows in their order: what a person's change of deliveries begins with, as a settle
-- locks these rows before deliveries too. Primary key.
-- Only here: a set of partitions; SQLite has one.
SELECT p.`partition`
FROM {prefix}outbox_partitions AS p FORCE INDEX (PRIMARY)
ORDER BY p.`partition`
FOR UPDATE;

-- name: partitions_store_mark
-- How far everything is settled. The fence holds these rows already. Primary key.
UPDATE {prefix}outbox_partitions FORCE INDEX (PRIMARY)
SET mark = :mark
WHERE `partition` IN :partitions;

-- name: partitions_set_suspicion
-- How often owners died in a row, and which event is being sent alone. The fence holds these rows
-- already. Primary key.
UPDATE {prefix}outbox_partitions
SET crashes = :crashes,
  probe_seq = :probe_seq
WHERE `partition` = :partition;

-- name: partitions_bump
-- Tells the owners of these deliveries that a person changed them. partitions_lock holds the rows.
-- Primary keys.
-- Only here: PostgreSQL leases all partitions in one statement.
UPDATE {prefix}outbox_partitions
SET generation = generation + 1
WHERE `partition` IN (
  SELECT d.slot MOD :partition_count
  FROM {prefix}outbox_deliveries AS d
  WHERE d.id IN :ids);
