-- The audit: what people did.

-- name: audit_insert
-- One line, in the transaction of the change. No index.
INSERT INTO {prefix}postrider_audit (at, who, action, object, reason, detail)
VALUES (:now, :who, :action, :object, :reason, :detail);
