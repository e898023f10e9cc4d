-- Heads: which delivery stands first for a (route, ordering key). The conditions are those of the
-- indexes outbox_deliveries_waiting_heads_idx and outbox_deliveries_taken_heads_idx.

-- name: heads_exist
-- Whether any delivery with a key blocks: mostly none does, and nothing more is asked then.
-- Only here: one query answers for a whole batch; SQLite looks key by key.
SELECT
  EXISTS (
    SELECT 1
    FROM {schema}{prefix}outbox_deliveries AS d
    WHERE d.current
      AND d.status = 'pending'
      AND d.ordering_key IS NOT NULL)
  OR EXISTS (
    SELECT 1
    FROM {schema}{prefix}outbox_deliveries AS d
    WHERE d.current
      AND d.ordering_key IS NOT NULL
      AND (d.status = 'dispatched' OR (d.status = 'failed' AND d.on_failed = 'halt')));

-- name: heads_list
-- Of these keys, the (route, key) pairs with a blocking delivery. Both indexes, once per key; a key
-- with a long queue is hopped over from route to route.
-- Only here: one query answers for a whole batch; SQLite looks key by key.
WITH RECURSIVE heads (ordering_key, route) AS (
  SELECT k.ordering_key, (
    SELECT min(b.route)
    FROM (
      (
        SELECT d.route
        FROM {schema}{prefix}outbox_deliveries AS d
        WHERE d.current
          AND d.status = 'pending'
          AND d.ordering_key = k.ordering_key
        ORDER BY d.route
        LIMIT 1
      )
      UNION ALL
      (
        SELECT d.route
        FROM {schema}{prefix}outbox_deliveries AS d
        WHERE d.current
          AND (d.status = 'dispatched' OR (d.status = 'failed' AND d.on_failed = 'halt'))
          AND d.ordering_key = k.ordering_key
        ORDER BY d.route
        LIMIT 1
      )) AS b)
  FROM unnest($1::text[]) AS k (ordering_key)
  UNION ALL
  SELECT h.ordering_key, (
    SELECT min(b.route)
    FROM (
      (
        SELECT d.route
        FROM {schema}{prefix}outbox_deliveries AS d
        WHERE d.current
          AND d.status = 'pending'
          AND d.ordering_key = h.ordering_key
          AND d.route > h.route
        ORDER BY d.route
        LIMIT 1
      )
      UNION ALL
      (
        SELECT d.route
        FROM {schema}{prefix}outbox_deliveries AS d
        WHERE d.current
          AND (d.status = 'dispatched' OR (d.status = 'failed' AND d.on_failed = 'halt'))
          AND d.ordering_key = h.ordering_key
          AND d.route > h.route
        ORDER BY d.route
        LIMIT 1
      )) AS b)
  FROM heads AS h
  WHERE h.route IS NOT NULL)
SELECT route, ordering_key
FROM heads
WHERE route IS NOT NULL
ORDER BY route, ordering_key;
