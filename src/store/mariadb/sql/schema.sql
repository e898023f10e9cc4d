-- Which migrations have run.

-- name: schema_lock
-- Lets one migration run at a time: MariaDB commits each statement of one by itself. A lock of the
-- session, by the name of the database.
-- Only here: the others migrate in a transaction.
SELECT get_lock(concat('postrider_', left(md5(concat(database(), '{prefix}')), 32)), :seconds);

-- name: schema_unlock
-- Only here: the others migrate in a transaction.
SELECT release_lock(concat('postrider_', left(md5(concat(database(), '{prefix}')), 32)));

-- name: schema_create
-- Made before the first migration.
CREATE TABLE IF NOT EXISTS {prefix}postrider_schema (
  number INT NOT NULL,
  name VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  applied_at DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6)),
  PRIMARY KEY (number)
) ENGINE = InnoDB;

-- name: schema_drop
-- After the last migration was taken back.
DROP TABLE {prefix}postrider_schema;

-- name: schema_exists
-- Whether any migration ever ran. The server's own table of tables.
SELECT 1
FROM information_schema.tables
WHERE table_schema = database()
  AND table_name = '{prefix}postrider_schema';

-- name: schema_applied
-- The steps that the database has. Primary key.
SELECT number, name
FROM {prefix}postrider_schema
ORDER BY number;

-- name: schema_insert
-- Records a step, behind its last statement.
INSERT INTO {prefix}postrider_schema (number, name)
VALUES (:number, :name);

-- name: schema_delete
-- Forgets a step, behind the last statement that took it back.
DELETE FROM {prefix}postrider_schema
WHERE number = :number;

-- name: schema_rows_at_risk
-- How much would be lost: events that have not left, and deliveries that are open. Indexes:
-- outbox_events_unrouted_idx and outbox_deliveries_status_idx.
SELECT
  (SELECT count(*) FROM {prefix}outbox_events WHERE routed_at IS NULL),
  (
    SELECT count(*)
    FROM {prefix}outbox_deliveries
    WHERE status IN ('held', 'pending', 'dispatched'));

-- name: schema_engines
-- Tables of ours whose engine has no transactions: somebody has converted them. The server's own
-- table of tables.
-- Only here: the others have one engine.
SELECT table_name
FROM information_schema.tables
WHERE table_schema = database()
  AND engine <> 'InnoDB'
  AND table_name IN (
    '{prefix}outbox_events', '{prefix}outbox_deliveries', '{prefix}outbox_partitions',
    '{prefix}outbox_keys', '{prefix}outbox_routes', '{prefix}outbox_aggregates',
    '{prefix}inbox_receipts')
ORDER BY table_name;
