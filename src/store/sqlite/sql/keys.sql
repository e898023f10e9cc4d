-- Idempotency keys: which event a request wrote.

-- name: keys_claim
-- Takes the key for an event that is about to be written; writes nothing when it is taken. Primary
-- key.
INSERT INTO {prefix}outbox_keys (scope, key, event_id, content_hash)
VALUES (:scope, :key, :event_id, :content_hash)
ON CONFLICT (scope, key) DO NOTHING;

-- name: keys_get
-- The event that took the key, and whether it had the same content. Primary key.
SELECT k.event_id,
  CASE k.content_hash WHEN :content_hash THEN 'same' ELSE 'other' END AS content
FROM {prefix}outbox_keys AS k
WHERE k.scope = :scope
  AND k.key = :key;

-- name: keys_purgeable
-- How many are older, as far as they are counted: a negative limit counts all. Index alone:
-- outbox_keys_age.
SELECT count(*)
FROM (
  SELECT 1
  FROM {prefix}outbox_keys AS k
  WHERE k.created_at <= :before
  LIMIT :limit);

-- name: keys_purge
-- Deletes the oldest. Index: outbox_keys_age, then the primary key.
DELETE FROM {prefix}outbox_keys
WHERE (scope, key) IN (
  SELECT k.scope, k.key
  FROM {prefix}outbox_keys AS k
  WHERE k.created_at <= :before
  ORDER BY k.created_at
  LIMIT :limit);
