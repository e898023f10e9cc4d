-- Idempotency keys: which event a request wrote.

-- name: keys_claim
-- Takes the key for an event that is about to be written; writes and returns nothing when it is
-- taken. Waits for an open transaction that has taken it. Primary key.
INSERT INTO {schema}{prefix}outbox_keys (scope, key, event_id, content_hash)
VALUES ($1::text, $2::text, $3::uuid, $4::bytea)
ON CONFLICT (scope, key) DO NOTHING
RETURNING event_id;

-- name: keys_get
-- The event that took the key, and whether it had the same content. Primary key.
SELECT k.event_id::text,
  CASE k.content_hash WHEN $3::bytea THEN 'same' ELSE 'other' END AS content
FROM {schema}{prefix}outbox_keys AS k
WHERE k.scope = $1::text
  AND k.key = $2::text;

-- name: keys_purgeable
-- How many are older. Index alone: outbox_keys_age_idx. $1 time, $2 age in ms.
SELECT count(*)
FROM {schema}{prefix}outbox_keys AS k
WHERE k.created_at <= coalesce($1::timestamptz, clock_timestamp()) - $2::bigint * interval '1 ms';

-- name: keys_purge
-- Deletes the oldest, passing over what another purge has locked, and writes the audit if a person
-- asked. Index: outbox_keys_age_idx; the rows themselves are then found by their place, at half the
-- price of the primary key. $3 rows, $4 who or null, $5 why.
WITH gone AS (
  DELETE FROM {schema}{prefix}outbox_keys
  WHERE ctid = ANY (ARRAY(
    SELECT k.ctid
    FROM {schema}{prefix}outbox_keys AS k
    WHERE k.created_at <= coalesce($1::timestamptz, clock_timestamp()) - $2::bigint * interval '1 ms'
    ORDER BY k.created_at
    LIMIT $3::bigint
    FOR UPDATE SKIP LOCKED))
  RETURNING 1),
audited AS (
  INSERT INTO {schema}{prefix}postrider_audit (at, who, action, object, reason, detail)
  SELECT coalesce($1::timestamptz, clock_timestamp()), $4::text, 'purge', 'keys', $5::text,
    n.number || ' keys'
  FROM (SELECT count(*) AS number FROM gone) AS n
  WHERE n.number > 0
    AND $4::text IS NOT NULL)
SELECT count(*)
FROM gone;
