-- Which migrations have run.

-- name: schema_lock
-- Lets one migration run at a time; a second one waits. Ends with the transaction. The number is
-- our own, one above the class of aggregates' locks.
-- Only here: SQLite has one writer and no schemas.
SELECT pg_advisory_xact_lock(1349743989, 1);

-- name: schema_namespace_exists
-- Whether the schema that is named is there. The catalog.
-- Only here: SQLite has one writer and no schemas.
SELECT EXISTS (
  SELECT 1
  FROM pg_namespace AS n
  WHERE n.nspname = $1::text);

-- name: schema_create
-- Made before the first migration, in its transaction.
CREATE TABLE IF NOT EXISTS {schema}{prefix}postrider_schema (
  number integer NOT NULL,
  name text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT {prefix}postrider_schema_pkey PRIMARY KEY (number)
);

-- name: schema_drop
-- After the last migration was taken back.
DROP TABLE {schema}{prefix}postrider_schema;

-- name: schema_exists
-- Whether any migration ever ran. The catalog.
SELECT to_regclass('{schema}{prefix}postrider_schema') IS NOT NULL;

-- name: schema_applied
-- The steps that the database has. Primary key.
SELECT s.number, s.name
FROM {schema}{prefix}postrider_schema AS s
ORDER BY s.number;

-- name: schema_insert
-- Records a step, in its transaction.
INSERT INTO {schema}{prefix}postrider_schema (number, name)
VALUES ($1::integer, $2::text);

-- name: schema_delete
-- Forgets a step that was taken back, in its transaction.
DELETE FROM {schema}{prefix}postrider_schema
WHERE number = $1::integer;

-- name: schema_rows_at_risk
-- How much would be lost: events that have not left, and deliveries that are open. Both tables are
-- read once.
SELECT
  (
    SELECT count(*)
    FROM {schema}{prefix}outbox_events AS e
    WHERE e.routed_at IS NULL),
  (
    SELECT count(*)
    FROM {schema}{prefix}outbox_deliveries AS d
    WHERE d.status IN ('held', 'pending', 'dispatched'));
