-- Jobs: columns of deliveries, the history of their failures, workers, and queues.
--
-- Locks: other writers of the file wait while each delivery is checked once and two indexes are built
-- anew: about a second per million rows.
ALTER TABLE {prefix}outbox_deliveries ADD COLUMN kind TEXT NOT NULL DEFAULT 'publish'
  CONSTRAINT kind_is_known CHECK (kind IN ('publish', 'job'));

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN queue TEXT;

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN transport TEXT
  CONSTRAINT transport_is_known CHECK (transport IN ('database', 'broker'));

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN priority INTEGER
  CONSTRAINT priority_is_known CHECK (priority BETWEEN -100 AND 100);

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN serial_key TEXT;

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN serial_limit INTEGER
  CONSTRAINT serial_limit_is_1_to_1000 CHECK (serial_limit BETWEEN 1 AND 1000);

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN unique_key TEXT;

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN on_worker_death TEXT
  CONSTRAINT on_worker_death_is_known CHECK (on_worker_death IN ('fail', 'retry'));

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN max_deaths INTEGER
  CONSTRAINT max_deaths_is_0_to_100 CHECK (max_deaths BETWEEN 0 AND 100);

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN timeout_limit_ms INTEGER;

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0
  CONSTRAINT deaths_count_from_0 CHECK (deaths >= 0);

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN snoozes INTEGER NOT NULL DEFAULT 0
  CONSTRAINT snoozes_count_from_0 CHECK (snoozes >= 0);

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN interruptions INTEGER NOT NULL DEFAULT 0
  CONSTRAINT interruptions_count_from_0 CHECK (interruptions >= 0);

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN worker TEXT;

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN cancel_requested_at TEXT;

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN percent INTEGER
  CONSTRAINT percent_is_up_to_100 CHECK (percent BETWEEN 0 AND 100);

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN note TEXT;

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN checkpoint BLOB
  CONSTRAINT checkpoint_has_at_most_64_kib CHECK (length(checkpoint) <= 65536);

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN result TEXT;

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN hooks TEXT
  CONSTRAINT hooks_are_a_json_object CHECK (
    CASE WHEN json_valid(hooks) THEN json_type(hooks) = 'object' ELSE hooks IS NULL END);

ALTER TABLE {prefix}outbox_deliveries ADD COLUMN serial_slot INTEGER
  CONSTRAINT serial_jobs_run_in_a_slot CHECK (
    (serial_slot IS NOT NULL) = (serial_key IS NOT NULL AND status = 'dispatched')
    AND (serial_slot IS NULL OR serial_slot BETWEEN 0 AND serial_limit - 1));

-- Last, as it speaks of the others: a column can only be dropped before those that it speaks of.
ALTER TABLE {prefix}outbox_deliveries ADD COLUMN job TEXT
  CONSTRAINT jobs_are_whole CHECK (
    CASE kind
      WHEN 'job' THEN job <> '' AND job IS NOT NULL
        AND queue <> '' AND queue IS NOT NULL
        AND transport IS NOT NULL
        AND priority IS NOT NULL
        AND on_worker_death IS NOT NULL
        AND max_deaths IS NOT NULL
        AND timeout_limit_ms >= timeout_ms AND timeout_limit_ms IS NOT NULL
        AND ordering_key IS NULL
        AND (serial_key IS NULL) = (serial_limit IS NULL)
      ELSE coalesce(job, queue, transport, priority, serial_key, serial_limit, unique_key,
        on_worker_death, max_deaths, timeout_limit_ms, worker, cancel_requested_at, hooks) IS NULL
    END);

-- Publish routes look at their own rows only. Statements repeat the condition word for word.
DROP INDEX {prefix}outbox_deliveries_pending;

CREATE INDEX {prefix}outbox_deliveries_pending
  ON {prefix}outbox_deliveries (route, event_seq, available_at, ordering_key, status, kind)
  WHERE status = 'pending' AND kind = 'publish';

DROP INDEX {prefix}outbox_deliveries_blocking;

CREATE INDEX {prefix}outbox_deliveries_blocking
  ON {prefix}outbox_deliveries (route, ordering_key, event_seq)
  WHERE current = 1
    AND (status IN ('pending', 'dispatched') OR (status = 'failed' AND on_failed = 'halt'))
    AND kind = 'publish';

-- An event makes a job once per queue and generation, whatever its routes are called.
CREATE UNIQUE INDEX {prefix}outbox_jobs_event
  ON {prefix}outbox_deliveries (event_seq, job, queue, generation)
  WHERE kind = 'job';

CREATE UNIQUE INDEX {prefix}outbox_jobs_unique
  ON {prefix}outbox_deliveries (job, unique_key)
  WHERE unique_key IS NOT NULL AND status IN ('pending', 'dispatched');

-- What workers take, in their order.
CREATE INDEX {prefix}outbox_jobs_take
  ON {prefix}outbox_deliveries (queue, priority, available_at, id)
  WHERE status = 'pending' AND transport = 'database';

-- What relays hand to brokers.
CREATE INDEX {prefix}outbox_jobs_hand_out
  ON {prefix}outbox_deliveries (route, available_at, id)
  WHERE status = 'pending' AND transport = 'broker';

-- Who stands before whom under a serial key, and that no two have one slot.
CREATE INDEX {prefix}outbox_jobs_serial
  ON {prefix}outbox_deliveries (queue, serial_key, event_seq, id)
  WHERE serial_key IS NOT NULL AND status IN ('pending', 'dispatched');

CREATE UNIQUE INDEX {prefix}outbox_jobs_serial_slot
  ON {prefix}outbox_deliveries (queue, serial_key, serial_slot)
  WHERE serial_slot IS NOT NULL;

-- What a dead worker leaves behind, and what is overdue.
CREATE INDEX {prefix}outbox_jobs_worker
  ON {prefix}outbox_deliveries (worker)
  WHERE status = 'dispatched' AND worker IS NOT NULL;

CREATE INDEX {prefix}outbox_jobs_timeout
  ON {prefix}outbox_deliveries (delivery_timeout_at)
  WHERE status = 'dispatched' AND kind = 'job';

-- The latest failed attempts of each job; they go with its row.
CREATE TABLE {prefix}outbox_job_failures (
  delivery_id TEXT NOT NULL
    REFERENCES {prefix}outbox_deliveries (id) ON DELETE CASCADE,
  dispatch_id TEXT NOT NULL,
  attempt INTEGER NOT NULL
    CONSTRAINT attempts_count_from_1 CHECK (attempt > 0),
  failed_at TEXT NOT NULL,
  code TEXT NOT NULL,
  detail TEXT NOT NULL,
  worker TEXT,
  PRIMARY KEY (delivery_id, dispatch_id)
) STRICT, WITHOUT ROWID;

-- Starts of worker processes. A start is never reused: who comes back has a new id.
CREATE TABLE {prefix}outbox_workers (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  version TEXT NOT NULL,
  queues TEXT NOT NULL
    CONSTRAINT queues_are_a_json_array CHECK (
      CASE WHEN json_valid(queues) THEN json_type(queues) = 'array' ELSE 0 END),
  state TEXT NOT NULL
    CONSTRAINT state_is_known CHECK (state IN (
      'running', 'quiet', 'stopping', 'stopped', 'dead')),
  started_at TEXT NOT NULL,
  last_seen_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX {prefix}outbox_workers_alive
  ON {prefix}outbox_workers (last_seen_at)
  WHERE state IN ('running', 'quiet', 'stopping');

CREATE INDEX {prefix}outbox_workers_ended
  ON {prefix}outbox_workers (last_seen_at)
  WHERE state IN ('stopped', 'dead');

CREATE TRIGGER {prefix}outbox_workers_end_once
BEFORE UPDATE OF state ON {prefix}outbox_workers
WHEN OLD.state IN ('stopped', 'dead') AND NEW.state <> OLD.state
BEGIN
  SELECT RAISE(ABORT, 'a worker that has ended does not come back: start it anew');
END;

-- Queues of which something is said; others run without limits.
CREATE TABLE {prefix}outbox_queues (
  queue TEXT NOT NULL PRIMARY KEY
    CONSTRAINT queue_is_not_empty CHECK (queue <> ''),
  paused_at TEXT,
  paused_by TEXT,
  reason TEXT NOT NULL DEFAULT '',
  rate_limit INTEGER,
  rate_period_ms INTEGER,
  tokens REAL NOT NULL DEFAULT 0,
  refilled_at TEXT,
  CONSTRAINT somebody_paused_it CHECK ((paused_at IS NULL) = (paused_by IS NULL)),
  CONSTRAINT a_rate_is_whole CHECK (
    (rate_limit IS NULL) = (rate_period_ms IS NULL)
    AND (rate_limit IS NULL OR (rate_limit > 0 AND rate_period_ms > 0)))
) STRICT, WITHOUT ROWID;
