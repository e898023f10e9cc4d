-- Removes everything that 001 created, with all events and deliveries.
--
-- Locks: every table exclusively, for a moment; it waits for open transactions of writers.

DROP VIEW {schema}{prefix}outbox;

DROP TABLE {schema}{prefix}postrider_audit;

DROP TABLE {schema}{prefix}outbox_routes;

DROP FUNCTION {schema}{prefix}outbox_fence(integer[], bigint[], boolean);

DROP TABLE {schema}{prefix}outbox_partitions;

DROP TABLE {schema}{prefix}outbox_deliveries;

DROP TABLE {schema}{prefix}outbox_events;

DROP FUNCTION {schema}{prefix}outbox_refuse_change();

DROP FUNCTION {schema}{prefix}outbox_events_before_insert();

DROP FUNCTION {schema}{prefix}outbox_lock_aggregate(integer);

DROP FUNCTION {schema}{prefix}outbox_uuidv7();

DROP SEQUENCE {schema}{prefix}outbox_events_seq;
