-- Which migrations have run.

-- name: schema_create
-- Made before the first migration, in its transaction.
CREATE TABLE IF NOT EXISTS {prefix}postrider_schema (
  number INTEGER NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z')
) STRICT;

-- name: schema_drop
-- After the last migration was taken back.
DROP TABLE {prefix}postrider_schema;

-- name: schema_exists
-- Whether any migration ever ran. SQLite's own table of tables.
SELECT 1
FROM sqlite_master
WHERE type = 'table'
  AND name = '{prefix}postrider_schema';

-- name: schema_applied
-- The steps that the database has. Primary key.
SELECT number, name
FROM {prefix}postrider_schema
ORDER BY number;

-- name: schema_insert
-- Records a step, in its transaction.
INSERT INTO {prefix}postrider_schema (number, name)
VALUES (:number, :name);

-- name: schema_delete
-- Forgets a step that was taken back, in its transaction.
DELETE FROM {prefix}postrider_schema
WHERE number = :number;

-- name: schema_rows_at_risk
-- How much would be lost: events that have not left, and deliveries that are open. Indexes:
-- outbox_events_unrouted; the deliveries are read once.
SELECT
  (SELECT count(*) FROM {prefix}outbox_events WHERE routed_at IS NULL),
  (
    SELECT count(*)
    FROM {prefix}outbox_deliveries
    WHERE status IN ('held', 'pending', 'dispatched'));
