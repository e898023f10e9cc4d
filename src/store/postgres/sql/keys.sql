-- Idempotency keys: which event a request wrote.

-- name: keys_claim
-- Takes the key for an event that is about to be written; writes nothing when it is taken. Waits for
-- an open transaction that has taken it. Primary key.
INSERT INTO {schema}{prefix}outbox_keys (scope, key, event_id, content_hash)
VALUES ($1::text, $2::text, $3::uuid, $4::bytea)
ON CONFLICT (scope, key) DO NOTHING;

-- name: keys_get
-- The event that took the key, and whether it had the same content. Primary key.
SELECT k.event_id::text,
  CASE k.content_hash WHEN $3::bytea THEN 'same' ELSE 'other' END AS content
FROM {schema}{prefix}outbox_keys AS k
WHERE k.scope = $1::text
  AND k.key = $2::text;
