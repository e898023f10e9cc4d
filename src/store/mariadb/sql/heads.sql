-- Heads: which delivery stands first for a (route, ordering key).

-- name: heads_list
-- Of these ordering keys, the pairs with a blocking delivery. Index: outbox_deliveries_heads_idx.
-- Only here: a whole batch at once; SQLite goes row by row.
SELECT DISTINCT d.route, d.ordering_key
FROM {prefix}outbox_deliveries AS d
WHERE d.ordering_key IN :keys
  AND d.current = 1
  AND d.kind = 'publish'
  AND (d.status IN ('pending', 'dispatched') OR (d.status = 'failed' AND d.on_failed = 'halt'));

-- name: heads_exist
-- Whether there is any blocking delivery at all: mostly not, and then nobody asks for whom. Index:
-- outbox_deliveries_status_idx.
-- Only here: a whole batch at once; SQLite goes row by row.
SELECT EXISTS (
  SELECT 1
  FROM {prefix}outbox_deliveries AS d
  WHERE d.status IN ('pending', 'dispatched', 'failed')
    AND d.ordering_key IS NOT NULL
    AND d.current = 1);
