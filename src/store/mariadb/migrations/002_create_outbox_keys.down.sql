-- Forgets which requests wrote an event: one that is repeated later writes another.
DROP TABLE IF EXISTS {prefix}outbox_keys;
