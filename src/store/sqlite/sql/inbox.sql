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
