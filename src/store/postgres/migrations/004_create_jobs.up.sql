-- Jobs: columns of deliveries, the history of their failures, workers, and queues.
--
-- Locks: outbox_deliveries exclusively, while its rows are checked once and two indexes are built
-- anew: about a second per million rows. Writers of events do not wait, relays do.
-- Workers need SELECT on outbox_events, SELECT and UPDATE on outbox_deliveries and outbox_queues,
-- SELECT, INSERT and UPDATE on outbox_workers, SELECT, INSERT and DELETE on outbox_job_failures, and for
-- routes with hooks INSERT on outbox_events and USAGE on outbox_events_seq.
ALTER TABLE {schema}{prefix}outbox_deliveries
  ADD COLUMN kind text NOT NULL DEFAULT 'publish',
  ADD COLUMN job text,
  ADD COLUMN queue text,
  ADD COLUMN transport text,
  ADD COLUMN priority smallint,
  ADD COLUMN serial_key text,
  ADD COLUMN serial_limit smallint,
  ADD COLUMN serial_slot smallint,
  ADD COLUMN unique_key text,
  ADD COLUMN on_worker_death text,
  ADD COLUMN max_deaths smallint,
  ADD COLUMN timeout_limit_ms bigint,
  ADD COLUMN deaths integer NOT NULL DEFAULT 0,
  ADD COLUMN snoozes integer NOT NULL DEFAULT 0,
  ADD COLUMN interruptions integer NOT NULL DEFAULT 0,
  ADD COLUMN worker uuid,
  ADD COLUMN cancel_requested_at timestamptz,
  ADD COLUMN percent smallint,
  ADD COLUMN note text,
  ADD COLUMN checkpoint bytea,
  ADD COLUMN result text,
  ADD COLUMN hooks text,
  ADD CONSTRAINT kind_is_known CHECK (kind IN ('publish', 'job')),
  ADD CONSTRAINT jobs_are_whole CHECK (
    CASE kind
      WHEN 'job' THEN job <> '' AND job IS NOT NULL
        AND queue <> '' AND queue IS NOT NULL
        AND transport IN ('database', 'broker') AND transport IS NOT NULL
        AND priority BETWEEN -100 AND 100 AND priority IS NOT NULL
        AND on_worker_death IN ('fail', 'retry') AND on_worker_death IS NOT NULL
        AND max_deaths BETWEEN 0 AND 100 AND max_deaths IS NOT NULL
        AND timeout_limit_ms >= timeout_ms AND timeout_limit_ms IS NOT NULL
        AND ordering_key IS NULL
      ELSE num_nonnulls(job, queue, transport, priority, serial_key, unique_key, on_worker_death,
        max_deaths, timeout_limit_ms, worker, cancel_requested_at, hooks) = 0
    END),
  ADD CONSTRAINT serial_jobs_have_a_key_and_a_limit CHECK (
    (serial_key IS NULL) = (serial_limit IS NULL)
    AND (serial_limit IS NULL OR serial_limit BETWEEN 1 AND 1000)),
  ADD CONSTRAINT serial_jobs_run_in_a_slot CHECK (
    (serial_slot IS NOT NULL) = (serial_key IS NOT NULL AND status = 'dispatched')
    AND (serial_slot IS NULL OR serial_slot BETWEEN 0 AND serial_limit - 1)),
  ADD CONSTRAINT jobs_count_from_0 CHECK (deaths >= 0 AND snoozes >= 0 AND interruptions >= 0),
  ADD CONSTRAINT hooks_are_a_json_object CHECK (json_typeof(hooks::json) = 'object'),
  ADD CONSTRAINT percent_is_up_to_100 CHECK (percent BETWEEN 0 AND 100),
  ADD CONSTRAINT checkpoint_has_at_most_64_kib CHECK (octet_length(checkpoint) <= 65536);

-- Publish routes look at their own rows only.
DROP INDEX {schema}{prefix}outbox_deliveries_open_idx;

CREATE INDEX {prefix}outbox_deliveries_open_idx
  ON {schema}{prefix}outbox_deliveries (event_seq)
  WHERE current AND status IN ('pending', 'dispatched') AND kind = 'publish';

DROP INDEX {schema}{prefix}outbox_deliveries_due_idx;

CREATE INDEX {prefix}outbox_deliveries_due_idx
  ON {schema}{prefix}outbox_deliveries (available_at)
  WHERE current AND status = 'pending' AND kind = 'publish';

-- An event makes a job once per queue and generation, whatever its routes are called.
CREATE UNIQUE INDEX {prefix}outbox_jobs_event_key
  ON {schema}{prefix}outbox_deliveries (event_seq, job, queue, generation)
  WHERE kind = 'job';

CREATE UNIQUE INDEX {prefix}outbox_jobs_unique_key
  ON {schema}{prefix}outbox_deliveries (job, unique_key)
  WHERE unique_key IS NOT NULL AND status IN ('pending', 'dispatched');

-- What workers take, in their order.
CREATE INDEX {prefix}outbox_jobs_take_idx
  ON {schema}{prefix}outbox_deliveries (queue, priority, available_at, id)
  WHERE status = 'pending' AND transport = 'database';

-- What relays hand to brokers.
CREATE INDEX {prefix}outbox_jobs_hand_out_idx
  ON {schema}{prefix}outbox_deliveries (route, available_at, id)
  WHERE status = 'pending' AND transport = 'broker';

-- Who stands before whom under a serial key, and that no two have one slot.
CREATE INDEX {prefix}outbox_jobs_serial_idx
  ON {schema}{prefix}outbox_deliveries (queue, serial_key, event_seq, id)
  WHERE serial_key IS NOT NULL AND status IN ('pending', 'dispatched');

CREATE UNIQUE INDEX {prefix}outbox_jobs_serial_slot_key
  ON {schema}{prefix}outbox_deliveries (queue, serial_key, serial_slot)
  WHERE serial_slot IS NOT NULL;

-- What a dead worker leaves behind. Dispatched rows are those with a deadline; said in these words,
-- no query that looks for a worker can be answered from outbox_deliveries_timeout_idx, which the
-- planner takes for as good while statistics are young.
CREATE INDEX {prefix}outbox_jobs_worker_idx
  ON {schema}{prefix}outbox_deliveries (worker)
  WHERE worker IS NOT NULL AND delivery_timeout_at IS NOT NULL;

-- The latest failed attempts of each job; they go with its row.
CREATE TABLE {schema}{prefix}outbox_job_failures (
  delivery_id uuid NOT NULL,
  dispatch_id uuid NOT NULL,
  attempt integer NOT NULL,
  failed_at timestamptz NOT NULL,
  code text NOT NULL,
  detail text NOT NULL,
  worker uuid,
  CONSTRAINT {prefix}outbox_job_failures_pkey PRIMARY KEY (delivery_id, dispatch_id),
  CONSTRAINT {prefix}outbox_job_failures_delivery_id_fkey FOREIGN KEY (delivery_id)
    REFERENCES {schema}{prefix}outbox_deliveries (id) ON DELETE CASCADE,
  CONSTRAINT attempts_count_from_1 CHECK (attempt > 0)
);

-- Starts of worker processes. A start is never reused: who comes back has a new id.
CREATE TABLE {schema}{prefix}outbox_workers (
  id uuid NOT NULL,
  name text NOT NULL,
  host text NOT NULL,
  pid bigint NOT NULL,
  version text NOT NULL,
  queues text NOT NULL,
  state text NOT NULL,
  started_at timestamptz NOT NULL,
  last_seen_at timestamptz NOT NULL,
  CONSTRAINT {prefix}outbox_workers_pkey PRIMARY KEY (id),
  CONSTRAINT queues_are_a_json_array CHECK (json_typeof(queues::json) = 'array'),
  CONSTRAINT state_is_known CHECK (state IN ('running', 'quiet', 'stopping', 'stopped', 'dead'))
) WITH (fillfactor = 50);

CREATE INDEX {prefix}outbox_workers_alive_idx
  ON {schema}{prefix}outbox_workers (last_seen_at)
  WHERE state IN ('running', 'quiet', 'stopping');

CREATE INDEX {prefix}outbox_workers_ended_idx
  ON {schema}{prefix}outbox_workers (last_seen_at)
  WHERE state IN ('stopped', 'dead');

CREATE TRIGGER {prefix}outbox_workers_end_once
  AFTER UPDATE OF state ON {schema}{prefix}outbox_workers
  FOR EACH ROW
  WHEN (OLD.state IN ('stopped', 'dead') AND NEW.state <> OLD.state)
  EXECUTE FUNCTION {schema}{prefix}outbox_refuse_change(
    'a worker that has ended does not come back: start it anew');

-- Queues of which something is said; others run without limits.
CREATE TABLE {schema}{prefix}outbox_queues (
  queue text NOT NULL,
  paused_at timestamptz,
  paused_by text,
  reason text NOT NULL DEFAULT '',
  rate_limit integer,
  rate_period_ms bigint,
  tokens double precision NOT NULL DEFAULT 0,
  refilled_at timestamptz,
  CONSTRAINT {prefix}outbox_queues_pkey PRIMARY KEY (queue),
  CONSTRAINT queue_is_not_empty CHECK (queue <> ''),
  CONSTRAINT somebody_paused_it CHECK ((paused_at IS NULL) = (paused_by IS NULL)),
  CONSTRAINT a_rate_is_whole CHECK (
    (rate_limit IS NULL) = (rate_period_ms IS NULL)
    AND (rate_limit IS NULL OR (rate_limit > 0 AND rate_period_ms > 0)))
);

-- Wakes workers that wait for jobs of this queue. Publish routes pay for a condition on each row and
-- for no call; one transaction tells of a queue once, as everybody who tells takes a lock of the
-- whole server at its commit. The channel's name has one length whatever our tables are called.
CREATE FUNCTION {schema}{prefix}outbox_tell_workers()
RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  told text := pg_catalog.left(coalesce(NEW.queue, OLD.queue), 255);
BEGIN
  PERFORM pg_catalog.set_config('postrider.told_queue', told, true);
  PERFORM pg_catalog.pg_notify(
    'postrider_jobs_' || pg_catalog.md5(TG_TABLE_SCHEMA || '.{prefix}outbox_deliveries'), told);
  RETURN NEW;
END
$$;

-- BEFORE, so that the first row of a statement is told of before the second is looked at.
CREATE TRIGGER {prefix}outbox_jobs_tell_of_new
  BEFORE INSERT ON {schema}{prefix}outbox_deliveries
  FOR EACH ROW
  WHEN (NEW.transport = 'database'
    AND NEW.status = 'pending'
    AND NEW.available_at <= pg_catalog.clock_timestamp()
    AND pg_catalog.current_setting('postrider.told_queue', true) IS DISTINCT FROM NEW.queue)
  EXECUTE FUNCTION {schema}{prefix}outbox_tell_workers();

CREATE TRIGGER {prefix}outbox_jobs_tell_of_due_again
  AFTER UPDATE OF status, available_at ON {schema}{prefix}outbox_deliveries
  FOR EACH ROW
  WHEN (NEW.transport = 'database'
    AND NEW.status = 'pending'
    AND NEW.available_at <= pg_catalog.clock_timestamp()
    AND pg_catalog.current_setting('postrider.told_queue', true) IS DISTINCT FROM NEW.queue)
  EXECUTE FUNCTION {schema}{prefix}outbox_tell_workers();

CREATE TRIGGER {prefix}outbox_queues_tell_of_resumed
  AFTER UPDATE OF paused_at ON {schema}{prefix}outbox_queues
  FOR EACH ROW
  WHEN (OLD.paused_at IS NOT NULL AND NEW.paused_at IS NULL)
  EXECUTE FUNCTION {schema}{prefix}outbox_tell_workers();

CREATE TRIGGER {prefix}outbox_queues_tell_of_forgotten
  AFTER DELETE ON {schema}{prefix}outbox_queues
  FOR EACH ROW
  WHEN (OLD.paused_at IS NOT NULL)
  EXECUTE FUNCTION {schema}{prefix}outbox_tell_workers();
