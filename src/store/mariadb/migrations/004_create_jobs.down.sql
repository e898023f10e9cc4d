-- Forgets workers and queues, and removes all deliveries of jobs.
--
-- Locks: outbox_deliveries, while its rows are written anew.
DROP TABLE IF EXISTS {prefix}outbox_queues;
DROP TABLE IF EXISTS {prefix}outbox_workers;

-- The column may be gone after a run that was killed midway.
ALTER TABLE {prefix}outbox_deliveries
  ADD COLUMN IF NOT EXISTS kind VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    DEFAULT 'publish';

DELETE FROM {prefix}outbox_deliveries
WHERE kind = 'job';

ALTER TABLE {prefix}outbox_deliveries
  DROP KEY IF EXISTS {prefix}outbox_jobs_event_key,
  DROP KEY IF EXISTS {prefix}outbox_jobs_unique_key,
  DROP KEY IF EXISTS {prefix}outbox_jobs_take_idx,
  DROP KEY IF EXISTS {prefix}outbox_jobs_serial_idx,
  DROP KEY IF EXISTS {prefix}outbox_jobs_serial_slot_key,
  DROP KEY IF EXISTS {prefix}outbox_jobs_worker_idx,
  DROP CONSTRAINT IF EXISTS kind_is_known,
  DROP CONSTRAINT IF EXISTS jobs_are_whole,
  DROP CONSTRAINT IF EXISTS serial_jobs_have_a_key_and_a_limit,
  DROP CONSTRAINT IF EXISTS serial_jobs_run_in_a_slot,
  DROP CONSTRAINT IF EXISTS jobs_count_from_0,
  DROP CONSTRAINT IF EXISTS percent_is_up_to_100,
  DROP CONSTRAINT IF EXISTS checkpoint_has_at_most_64_kib,
  DROP COLUMN IF EXISTS open_unique_key,
  DROP COLUMN IF EXISTS kind,
  DROP COLUMN IF EXISTS job,
  DROP COLUMN IF EXISTS queue,
  DROP COLUMN IF EXISTS transport,
  DROP COLUMN IF EXISTS priority,
  DROP COLUMN IF EXISTS serial_key,
  DROP COLUMN IF EXISTS serial_limit,
  DROP COLUMN IF EXISTS serial_slot,
  DROP COLUMN IF EXISTS unique_key,
  DROP COLUMN IF EXISTS on_worker_death,
  DROP COLUMN IF EXISTS max_deaths,
  DROP COLUMN IF EXISTS timeout_limit_ms,
  DROP COLUMN IF EXISTS deaths,
  DROP COLUMN IF EXISTS snoozes,
  DROP COLUMN IF EXISTS interruptions,
  DROP COLUMN IF EXISTS worker,
  DROP COLUMN IF EXISTS cancel_requested_at,
  DROP COLUMN IF EXISTS percent,
  DROP COLUMN IF EXISTS note,
  DROP COLUMN IF EXISTS checkpoint,
  DROP COLUMN IF EXISTS result;
