-- Removes the outbox with everything in it.
--
-- Locks: waits for every transaction that has touched one of the tables.
DROP VIEW IF EXISTS {prefix}outbox;
DROP TABLE IF EXISTS {prefix}postrider_audit;
DROP TABLE IF EXISTS {prefix}outbox_routes;
DROP TABLE IF EXISTS {prefix}outbox_partitions;
DROP TABLE IF EXISTS {prefix}outbox_deliveries;
DROP TABLE IF EXISTS {prefix}outbox_events;
DROP TABLE IF EXISTS {prefix}outbox_aggregates;
DROP SEQUENCE IF EXISTS {prefix}outbox_events_seq;
