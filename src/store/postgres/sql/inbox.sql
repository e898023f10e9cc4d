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

-- name: inbox_purgeable
-- How many are older. Index alone: inbox_receipts_age_idx. $1 time, $2 age in ms.
SELECT count(*)
FROM {schema}{prefix}inbox_receipts AS r
WHERE r.received_at <= coalesce($1::timestamptz, clock_timestamp()) - $2::bigint * interval '1 ms';

-- name: inbox_purge
-- Deletes the oldest, passing over what another purge has locked, and writes the audit if a person
-- asked. Index: inbox_receipts_age_idx; the rows themselves are then found by their place, at half the
-- price of the primary key. $3 rows, $4 who or null, $5 why.
WITH gone AS (
  DELETE FROM {schema}{prefix}inbox_receipts
  WHERE ctid = ANY (ARRAY(
    SELECT r.ctid
    FROM {schema}{prefix}inbox_receipts AS r
    WHERE r.received_at <= coalesce($1::timestamptz, clock_timestamp()) - $2::bigint * interval '1 ms'
    ORDER BY r.received_at
    LIMIT $3::bigint
    FOR UPDATE SKIP LOCKED))
  RETURNING 1),
audited AS (
  INSERT INTO {schema}{prefix}postrider_audit (at, who, action, object, reason, detail)
  SELECT coalesce($1::timestamptz, clock_timestamp()), $4::text, 'purge', 'receipts', $5::text,
    n.number || ' receipts'
  FROM (SELECT count(*) AS number FROM gone) AS n
  WHERE n.number > 0
    AND $4::text IS NOT NULL)
SELECT count(*)
FROM gone;
