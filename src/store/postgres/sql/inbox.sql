-- Receipts: which messages a consumer has processed.

-- name: inbox_claim
-- Records a message; writes nothing when it was recorded before. Waits for an open transaction that
-- has recorded it. Primary key.
INSERT INTO {schema}{prefix}inbox_receipts (consumer, source, message_id, content_hash)
VALUES ($1::text, $2::text, $3::text, $4::bytea)
ON CONFLICT (consumer, source, message_id) DO NOTHING;

-- name: inbox_get
-- Whether the message that was recorded had the same content. Primary key.
SELECT CASE r.content_hash WHEN $4::bytea THEN 'same' ELSE 'other' END AS content
FROM {schema}{prefix}inbox_receipts AS r
WHERE r.consumer = $1::text
  AND r.source = $2::text
  AND r.message_id = $3::text;
