-- Routes that wait.

-- name: routes_list
-- Primary key.
SELECT r.route
FROM {schema}{prefix}outbox_routes AS r
ORDER BY r.route;

-- name: routes_pause
-- Lets routes wait; one that waits already stays as it is. Returns the others. Primary key.
INSERT INTO {schema}{prefix}outbox_routes (route, kind, paused_by, reason, paused_at)
SELECT DISTINCT n.route, $2::text, $3::text, $4::text, coalesce($5::timestamptz, clock_timestamp())
FROM unnest($1::text[]) AS n (route)
ORDER BY n.route
ON CONFLICT (route) DO NOTHING
RETURNING route;

-- name: routes_resume
-- Lets a route go on, whoever made it wait. Primary key.
DELETE FROM {schema}{prefix}outbox_routes
WHERE route = $1::text
RETURNING route;
