-- The partition's row: lease, token, mark, generation, suspicion. There is one, number 0.

-- name: partitions_list
-- Primary key.
SELECT p.partition, p.owner, p.token, p.leased_until, p.mark, p.generation, p.crashes, p.probe_seq
FROM {prefix}outbox_partitions AS p
ORDER BY p.partition;

-- name: partitions_take
-- Gives the partition to an owner with the next token, unless somebody's lease still runs. One
-- that ends later than any may last was written before the clock was set back. One that its last
-- owner has not released counts a crash. Primary key.
-- Only here: PostgreSQL leases all partitions in one statement.
UPDATE {prefix}outbox_partitions
SET owner = :owner,
  token = token + 1,
  leased_until = :leased_until,
  crashes = crashes + (owner IS NOT NULL)
WHERE partition = :partition
  AND (owner IS NULL OR leased_until <= :now OR leased_until > :latest_end);

-- name: partitions_renew
-- Moves the end of a lease, also of one that ran out and that nobody took. Primary key.
-- Only here: PostgreSQL leases all partitions in one statement.
UPDATE {prefix}outbox_partitions
SET leased_until = :leased_until
WHERE partition = :partition
  AND owner = :owner;

-- name: partitions_release
-- Ends a lease; token and mark stay, and nobody has died. Primary key.
UPDATE {prefix}outbox_partitions
SET owner = NULL,
  leased_until = NULL,
  crashes = 0,
  probe_seq = NULL
WHERE partition = :partition
  AND token = :token;

-- name: partitions_store_mark
-- How far everything is settled. Primary key.
UPDATE {prefix}outbox_partitions
SET mark = :mark
WHERE partition = :partition;

-- name: partitions_set_suspicion
-- How often owners died in a row, and which event is being sent alone. Primary key.
UPDATE {prefix}outbox_partitions
SET crashes = :crashes,
  probe_seq = :probe_seq
WHERE partition = :partition;

-- name: partitions_bump
-- Tells the owner that a person changed deliveries. Primary key.
-- Only here: PostgreSQL leases all partitions in one statement.
UPDATE {prefix}outbox_partitions
SET generation = generation + 1
WHERE partition = :partition;
