-- Heads: which delivery stands first for a (route, ordering key). The blocking condition is that of
-- the index outbox_deliveries_blocking, word for word.

-- name: heads_routes
-- Routes that have any blocking row: mostly none, and never many. Hops from route to route over
-- outbox_deliveries_blocking.
-- Only here: PostgreSQL asks for a whole batch at once.
WITH RECURSIVE blocking_routes (route) AS (
  SELECT min(d.route)
  FROM {prefix}outbox_deliveries AS d
  WHERE d.current = 1
    AND (d.status IN ('pending', 'dispatched') OR (d.status = 'failed' AND d.on_failed = 'halt'))
    AND d.kind = 'publish'
  UNION ALL
  SELECT (
    SELECT min(d.route)
    FROM {prefix}outbox_deliveries AS d
    WHERE d.current = 1
      AND (d.status IN ('pending', 'dispatched') OR (d.status = 'failed' AND d.on_failed = 'halt'))
      AND d.kind = 'publish'
      AND d.route > r.route)
  FROM blocking_routes AS r
  WHERE r.route IS NOT NULL)
SELECT route
FROM blocking_routes
WHERE route IS NOT NULL
ORDER BY route;

-- name: heads_next
-- The first blocking row of a (route, ordering key) behind :after. Index:
-- outbox_deliveries_blocking.
-- Only here: PostgreSQL asks for a whole batch at once.
SELECT d.event_seq
FROM {prefix}outbox_deliveries AS d
WHERE d.current = 1
  AND (d.status IN ('pending', 'dispatched') OR (d.status = 'failed' AND d.on_failed = 'halt'))
  AND d.kind = 'publish'
  AND d.route = :route
  AND d.ordering_key = :ordering_key
  AND d.event_seq > :after
ORDER BY d.event_seq
LIMIT 1;
