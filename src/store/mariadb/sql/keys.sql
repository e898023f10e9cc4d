-- Idempotency keys: which event a request wrote.

-- name: keys_claim
-- Takes the key for an event that is about to be written; when it is taken, the caller is told so by
-- the error of the primary key, which waits for whoever holds it.
INSERT INTO {prefix}outbox_keys (scope, `key`, event_id, content_hash)
VALUES (:scope, :key, :event_id, :content_hash);

-- name: keys_get
-- The event that took the key, and whether it had the same content. Locked, so that the row is seen
-- that was in the way, and not an older snapshot of the caller's. Primary key.
SELECT k.event_id,
  CASE k.content_hash WHEN :content_hash THEN 'same' ELSE 'other' END AS content
FROM {prefix}outbox_keys AS k
WHERE k.scope = :scope
  AND k.`key` = :key
LOCK IN SHARE MODE;

-- name: keys_purgeable
-- How many are older, as far as they are counted. Index alone: outbox_keys_age_idx.
SELECT count(*)
FROM (
  SELECT 1
  FROM {prefix}outbox_keys AS k
  WHERE k.created_at <= :before
  LIMIT :limit) AS o;

-- name: keys_purge
-- Deletes the oldest. Index: outbox_keys_age_idx.
DELETE FROM {prefix}outbox_keys
WHERE created_at <= :before
ORDER BY created_at
LIMIT :limit;
