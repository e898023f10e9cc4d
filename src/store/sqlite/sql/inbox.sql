-- Receipts: which messages a consumer has processed.

-- name: inbox_claim
-- Records a message; writes nothing when it was recorded before. Primary key.
INSERT INTO {prefix}inbox_receipts (consumer, source, message_id, content_hash)
VALUES (:consumer, :source, :message_id, :content_hash)
ON CONFLICT (consumer, source, message_id) DO NOTHING;

-- name: inbox_get
-- Whether the message that was recorded had the same content. Primary key.
SELECT CASE r.content_hash WHEN :content_hash THEN 'same' ELSE 'other' END AS content
FROM {prefix}inbox_receipts AS r
WHERE r.consumer = :consumer
  AND r.source = :source
  AND r.message_id = :message_id;

-- name: inbox_purgeable
-- How many are older, as far as they are counted: a negative limit counts all. Index alone:
-- inbox_receipts_age.
SELECT count(*)
FROM (
  SELECT 1
  FROM {prefix}inbox_receipts AS r
  WHERE r.received_at <= :before
  LIMIT :limit);

-- name: inbox_purge
-- Deletes the oldest. Index: inbox_receipts_age, then the primary key.
DELETE FROM {prefix}inbox_receipts
WHERE (consumer, source, message_id) IN (
  SELECT r.consumer, r.source, r.message_id
  FROM {prefix}inbox_receipts AS r
  WHERE r.received_at <= :before
  ORDER BY r.received_at
  LIMIT :limit);
