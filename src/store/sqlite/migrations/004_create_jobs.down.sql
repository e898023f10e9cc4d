-- Forgets workers, queues and failures, and removes all deliveries of jobs.
--
-- Locks: other writers of the file wait while the deliveries are written anew.
DROP TABLE {prefix}outbox_queues;

DROP TABLE {prefix}outbox_workers;

DROP TABLE {prefix}outbox_job_failures;

DELETE FROM {prefix}outbox_deliveries
WHERE kind = 'job';

DROP INDEX {prefix}outbox_jobs_timeout;
DROP INDEX {prefix}outbox_jobs_worker;
DROP INDEX {prefix}outbox_jobs_serial_slot;
DROP INDEX {prefix}outbox_jobs_serial;
DROP INDEX {prefix}outbox_jobs_hand_out;
DROP INDEX {prefix}outbox_jobs_take;
DROP INDEX {prefix}outbox_jobs_unique;
DROP INDEX {prefix}outbox_jobs_event;
DROP INDEX {prefix}outbox_deliveries_pending;
DROP INDEX {prefix}outbox_deliveries_blocking;

ALTER TABLE {prefix}outbox_deliveries DROP COLUMN job;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN serial_slot;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN hooks;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN result;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN checkpoint;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN note;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN percent;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN cancel_requested_at;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN worker;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN interruptions;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN snoozes;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN deaths;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN timeout_limit_ms;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN max_deaths;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN on_worker_death;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN unique_key;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN serial_limit;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN serial_key;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN priority;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN transport;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN queue;
ALTER TABLE {prefix}outbox_deliveries DROP COLUMN kind;

CREATE INDEX {prefix}outbox_deliveries_blocking
  ON {prefix}outbox_deliveries (route, ordering_key, event_seq)
  WHERE current = 1
    AND (status IN ('pending', 'dispatched') OR (status = 'failed' AND on_failed = 'halt'));

CREATE INDEX {prefix}outbox_deliveries_pending
  ON {prefix}outbox_deliveries (route, event_seq, available_at, ordering_key, status)
  WHERE status = 'pending';
