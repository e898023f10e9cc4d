-- Forgets schedules and which of their slots have run. Their events stay.
--
-- Locks: the two tables only.
DROP TABLE {schema}{prefix}outbox_schedule_slots;

DROP TABLE {schema}{prefix}outbox_schedules;
