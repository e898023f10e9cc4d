-- The audit: what people did.

-- name: audit_insert
-- One line, in the transaction of the change. No index.
INSERT INTO {schema}{prefix}postrider_audit (at, who, action, object, reason, detail)
VALUES (coalesce($1::timestamptz, clock_timestamp()), $2::text, $3::text, $4::text, $5::text,
  $6::text);
