-- Forgets workers, queues and failures, and removes all deliveries of jobs.
--
-- Locks: outbox_deliveries exclusively, while two indexes are built anew.
DROP TABLE {schema}{prefix}outbox_queues;

DROP TABLE {schema}{prefix}outbox_workers;

DROP TABLE {schema}{prefix}outbox_job_failures;

DROP TRIGGER {prefix}outbox_jobs_tell_of_new ON {schema}{prefix}outbox_deliveries;

DROP TRIGGER {prefix}outbox_jobs_tell_of_due_again ON {schema}{prefix}outbox_deliveries;

DROP FUNCTION {schema}{prefix}outbox_tell_workers();

DELETE FROM {schema}{prefix}outbox_deliveries
WHERE kind = 'job';

-- Indexes and constraints go with their columns.
ALTER TABLE {schema}{prefix}outbox_deliveries
  DROP COLUMN kind,
  DROP COLUMN job,
  DROP COLUMN queue,
  DROP COLUMN transport,
  DROP COLUMN priority,
  DROP COLUMN serial_key,
  DROP COLUMN serial_limit,
  DROP COLUMN serial_slot,
  DROP COLUMN unique_key,
  DROP COLUMN on_worker_death,
  DROP COLUMN max_deaths,
  DROP COLUMN timeout_limit_ms,
  DROP COLUMN deaths,
  DROP COLUMN snoozes,
  DROP COLUMN interruptions,
  DROP COLUMN worker,
  DROP COLUMN cancel_requested_at,
  DROP COLUMN percent,
  DROP COLUMN note,
  DROP COLUMN checkpoint,
  DROP COLUMN result,
  DROP COLUMN hooks;

CREATE INDEX {prefix}outbox_deliveries_open_idx
  ON {schema}{prefix}outbox_deliveries (event_seq)
  WHERE current AND status IN ('pending', 'dispatched');

CREATE INDEX {prefix}outbox_deliveries_due_idx
  ON {schema}{prefix}outbox_deliveries (available_at)
  WHERE current AND status = 'pending';
