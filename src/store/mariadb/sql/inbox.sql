-- Receipts: which messages a consumer has processed.

-- name: inbox_claim
-- Records a message; when it was recorded before, the caller is told so by the error of the primary
-- key, which waits for whoever is at it.
INSERT INTO {prefix}inbox_receipts (consumer, source, message_id, content_hash)
VALUES (:consumer, :source, :message_id, :content_hash);

-- name: inbox_get
-- Whether the message that was recorded had the same content. Locked, as in keys_get. Primary key.
SELECT CASE r.content_hash WHEN :content_hash THEN 'same' ELSE 'other' END AS content
FROM {prefix}inbox_receipts AS r
WHERE r.consumer = :consumer
  AND r.source = :source
  AND r.message_id = :message_id
LOCK IN SHARE MODE;

-- name: inbox_purgeable
-- How many are older, as far as they are counted. Index alone: inbox_receipts_age_idx.
SELECT count(*)
FROM (
  SELECT 1
  FROM {prefix}inbox_receipts AS r
  WHERE r.received_at <= :before
  LIMIT :limit) AS o;

-- name: inbox_purge
-- Deletes the oldest. Index: inbox_receipts_age_idx.
DELETE FROM {prefix}inbox_receipts
WHERE received_at <= :before
ORDER BY received_at
LIMIT :limit;
