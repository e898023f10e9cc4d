-- Routes that wait.

-- name: routes_list
-- Primary key.
SELECT r.route
FROM {prefix}outbox_routes AS r
ORDER BY r.route;

-- name: routes_pause
-- Lets a route wait; for one that waits already the caller is told that the key is taken. Primary
-- key.
INSERT INTO {prefix}outbox_routes (route, kind, paused_by, reason, paused_at)
VALUES (:route, :kind, :paused_by, :reason, :now);

-- name: routes_resume
-- Lets a route go on, whoever made it wait. Primary key.
DELETE FROM {prefix}outbox_routes
WHERE route = :route;
