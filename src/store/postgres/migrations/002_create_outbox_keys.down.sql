-- Forgets which requests wrote an event: one that is repeated later writes another.
--
-- Locks: the table exclusively, for a moment; it waits for open transactions of writers.
DROP TABLE {schema}{prefix}outbox_keys;
