-- Takes the whole outbox away, rows included; triggers and indexes go with their tables.
DROP VIEW {prefix}outbox;
DROP TABLE {prefix}postrider_audit;
DROP TABLE {prefix}outbox_routes;
DROP TABLE {prefix}outbox_partitions;
DROP TABLE {prefix}outbox_deliveries;
DROP TABLE {prefix}outbox_events;
