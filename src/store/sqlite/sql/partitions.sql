-- The partition's row: lease, token, mark, generation. There is one, number 0.

-- name: partitions_list
-- Primary key.
SELECT p.partition, p.owner, p.token, p.leased_until, p.mark, p.generation
FROM {prefix}outbox_partitions AS p
ORDER BY p.partition;

-- name: partitions_take
-- Gives the partition to an owner with the next token, unless somebody's lease still runs.
-- Primary key.
-- Only here: PostgreSQL leases all partitions in one statement.
UPDATE {prefix}outbox_partitions
SET owner = :owner,
  token = token + 1,
  leased_until = :leased_until
WHERE partition = :partition
  AND (owner IS NULL OR leased_until <= :now);

-- name: partitions_renew
-- Moves the end of a lease, also of one that ran out and that nobody took. Primary key.
-- Only here: PostgreSQL leases all partitions in one statement.
UPDATE {prefix}outbox_partitions
SET leased_until = :leased_until
WHERE partition = :partition
  AND owner = :owner;

-- name: partitions_release
-- Ends a lease; token and mark stay. Primary key.
UPDATE {prefix}outbox_partitions
SET owner = NULL,
  leased_until = NULL
WHERE partition = :partition
  AND token = :token;

-- name: partitions_store_mark
-- How far everything is settled. Primary key.
UPDATE {prefix}outbox_partitions
SET mark = :mark
WHERE partition = :partition;

-- name: partitions_bump
-- Tells the owner that a person changed deliveries. Primary key.
-- Only here: PostgreSQL leases all partitions in one statement.
UPDATE {prefix}outbox_partitions
SET generation = generation + 1
WHERE partition = :partition;
