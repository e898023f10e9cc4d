-- Jobs: columns of deliveries, workers, and queues.
--
-- Locks: outbox_deliveries, while its rows are checked once and indexes are built. Writers of events
-- do not wait, relays do.
-- Workers need SELECT on outbox_events, SELECT and UPDATE on outbox_deliveries and outbox_queues, and
-- SELECT, INSERT and UPDATE on outbox_workers.
--
-- open_unique_key is unique_key as long as the job is open: what is unique among open jobs only.
ALTER TABLE {prefix}outbox_deliveries
  ADD COLUMN IF NOT EXISTS kind VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    DEFAULT 'publish',
  ADD COLUMN IF NOT EXISTS job VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NULL,
  ADD COLUMN IF NOT EXISTS queue VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NULL,
  ADD COLUMN IF NOT EXISTS transport VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NULL,
  ADD COLUMN IF NOT EXISTS priority SMALLINT NULL,
  ADD COLUMN IF NOT EXISTS serial_key VARCHAR(255) CHARACTER SET utf8mb4
    COLLATE utf8mb4_nopad_bin NULL,
  ADD COLUMN IF NOT EXISTS serial_limit SMALLINT NULL,
  ADD COLUMN IF NOT EXISTS serial_slot SMALLINT NULL,
  ADD COLUMN IF NOT EXISTS unique_key VARCHAR(255) CHARACTER SET utf8mb4
    COLLATE utf8mb4_nopad_bin NULL,
  ADD COLUMN IF NOT EXISTS open_unique_key VARCHAR(255) CHARACTER SET utf8mb4
    COLLATE utf8mb4_nopad_bin
    AS (IF(status IN ('pending', 'dispatched'), unique_key, NULL)) VIRTUAL,
  ADD COLUMN IF NOT EXISTS on_worker_death VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NULL,
  ADD COLUMN IF NOT EXISTS max_deaths SMALLINT NULL,
  ADD COLUMN IF NOT EXISTS timeout_limit_ms BIGINT NULL,
  ADD COLUMN IF NOT EXISTS deaths INT NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS snoozes INT NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS interruptions INT NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS worker CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NULL,
  ADD COLUMN IF NOT EXISTS cancel_requested_at DATETIME(6) NULL,
  ADD COLUMN IF NOT EXISTS percent SMALLINT NULL,
  ADD COLUMN IF NOT EXISTS note TEXT CHARACTER SET utf8mb4 NULL,
  ADD COLUMN IF NOT EXISTS checkpoint MEDIUMBLOB NULL,
  ADD COLUMN IF NOT EXISTS result TEXT CHARACTER SET utf8mb4 NULL,
  ADD CONSTRAINT IF NOT EXISTS kind_is_known CHECK (kind IN ('publish', 'job')),
  ADD CONSTRAINT IF NOT EXISTS jobs_are_whole CHECK (
    CASE kind
      WHEN 'job' THEN job <> '' AND job IS NOT NULL
        AND queue <> '' AND queue IS NOT NULL
        AND transport IN ('database', 'broker') AND transport IS NOT NULL
        AND priority BETWEEN -100 AND 100 AND priority IS NOT NULL
        AND on_worker_death IN ('fail', 'retry') AND on_worker_death IS NOT NULL
        AND max_deaths BETWEEN 0 AND 100 AND max_deaths IS NOT NULL
        AND timeout_limit_ms >= timeout_ms AND timeout_limit_ms IS NOT NULL
        AND ordering_key IS NULL
      ELSE coalesce(job, queue, transport, priority, serial_key, unique_key, on_worker_death,
        max_deaths, timeout_limit_ms, worker, cancel_requested_at) IS NULL
    END),
  ADD CONSTRAINT IF NOT EXISTS serial_jobs_have_a_key_and_a_limit CHECK (
    (serial_key IS NULL) = (serial_limit IS NULL)
    AND (serial_limit IS NULL OR serial_limit BETWEEN 1 AND 1000)),
  ADD CONSTRAINT IF NOT EXISTS serial_jobs_run_in_a_slot CHECK (
    (serial_slot IS NOT NULL) = (serial_key IS NOT NULL AND status = 'dispatched')
    AND (serial_slot IS NULL OR serial_slot BETWEEN 0 AND serial_limit - 1)),
  ADD CONSTRAINT IF NOT EXISTS jobs_count_from_0 CHECK (
    deaths >= 0 AND snoozes >= 0 AND interruptions >= 0),
  ADD CONSTRAINT IF NOT EXISTS percent_is_up_to_100 CHECK (percent BETWEEN 0 AND 100),
  ADD CONSTRAINT IF NOT EXISTS checkpoint_has_at_most_64_kib CHECK (
    octet_length(checkpoint) <= 65536),
  -- An event makes a job once per queue and generation, whatever its routes are called.
  ADD UNIQUE KEY IF NOT EXISTS {prefix}outbox_jobs_event_key (event_seq, job, queue, generation),
  ADD UNIQUE KEY IF NOT EXISTS {prefix}outbox_jobs_unique_key (job, open_unique_key),
  -- What workers take, in their order.
  ADD KEY IF NOT EXISTS {prefix}outbox_jobs_take_idx (queue, status, priority, available_at, id),
  -- Who stands before whom under a serial key, and that no two have one slot.
  ADD KEY IF NOT EXISTS {prefix}outbox_jobs_serial_idx (queue, serial_key, status, event_seq),
  ADD UNIQUE KEY IF NOT EXISTS {prefix}outbox_jobs_serial_slot_key (queue, serial_key, serial_slot),
  -- What a dead worker leaves behind.
  ADD KEY IF NOT EXISTS {prefix}outbox_jobs_worker_idx (worker, status);

-- Starts of worker processes. A start is never reused: who comes back has a new id.
CREATE TABLE IF NOT EXISTS {prefix}outbox_workers (
  id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  name TEXT CHARACTER SET utf8mb4 NOT NULL,
  host TEXT CHARACTER SET utf8mb4 NOT NULL,
  pid BIGINT NOT NULL,
  version TEXT CHARACTER SET utf8mb4 NOT NULL,
  queues TEXT CHARACTER SET utf8mb4 NOT NULL,
  state VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  started_at DATETIME(6) NOT NULL,
  last_seen_at DATETIME(6) NOT NULL,
  PRIMARY KEY (id),
  KEY {prefix}outbox_workers_state_idx (state, last_seen_at),
  CONSTRAINT queues_are_a_json_array CHECK (json_valid(queues) AND json_type(queues) = 'ARRAY'),
  CONSTRAINT state_is_known CHECK (state IN ('running', 'quiet', 'stopping', 'stopped', 'dead'))
) ENGINE = InnoDB;

DELIMITER //
CREATE OR REPLACE TRIGGER {prefix}outbox_workers_before_update
BEFORE UPDATE ON {prefix}outbox_workers
FOR EACH ROW
BEGIN
  IF OLD.state IN ('stopped', 'dead') AND NEW.state <> OLD.state THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
      MESSAGE_TEXT = 'a worker that has ended does not come back: start it anew';
  END IF;
END
//
DELIMITER ;

-- Queues of which something is said; others run without limits.
CREATE TABLE IF NOT EXISTS {prefix}outbox_queues (
  queue VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  paused_at DATETIME(6) NULL,
  paused_by TEXT CHARACTER SET utf8mb4 NULL,
  reason TEXT CHARACTER SET utf8mb4 NOT NULL DEFAULT '',
  rate_limit BIGINT NULL,
  rate_period_ms BIGINT NULL,
  tokens DOUBLE NOT NULL DEFAULT 0,
  refilled_at DATETIME(6) NULL,
  PRIMARY KEY (queue),
  CONSTRAINT queue_is_not_empty CHECK (queue <> ''),
  CONSTRAINT somebody_paused_it CHECK ((paused_at IS NULL) = (paused_by IS NULL)),
  CONSTRAINT a_rate_is_whole CHECK (
    (rate_limit IS NULL) = (rate_period_ms IS NULL)
    AND (rate_limit IS NULL OR (rate_limit > 0 AND rate_period_ms > 0)))
) ENGINE = InnoDB;
