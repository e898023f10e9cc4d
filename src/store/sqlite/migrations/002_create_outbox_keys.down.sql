-- Forgets which requests wrote an event: one that is repeated later writes another.
DROP TABLE {prefix}outbox_keys;
