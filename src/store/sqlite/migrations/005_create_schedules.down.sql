-- Forgets schedules and which of their slots have run. Their events stay.
--
-- Locks: other writers of the file wait for its one short transaction.
DROP TABLE {prefix}outbox_schedule_slots;

DROP TABLE {prefix}outbox_schedules;
