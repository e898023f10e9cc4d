-- Events, deliveries, leases, paused routes and the audit.
--
-- Locks: none that anybody could wait for, as it only creates objects.
-- Writers need INSERT on outbox_events and USAGE on outbox_events_seq.

-- The one source of `seq`. CACHE 1 and no cycle, as a reader relies on numbers that only grow: a
-- number may be missing, but none may appear below one that was drawn by a later transaction of
-- the same aggregate.
CREATE SEQUENCE {schema}{prefix}outbox_events_seq
  AS bigint
  INCREMENT BY 1
  MINVALUE 1
  CACHE 1
  NO CYCLE;

-- A UUIDv7: 48 bits of milliseconds, then chance; the variant bits, and one of the three bits of the
-- version, are those of gen_random_uuid. By bytes, as the same by texts takes twice as long.
CREATE FUNCTION {schema}{prefix}outbox_uuidv7()
RETURNS uuid
LANGUAGE sql
VOLATILE
PARALLEL SAFE
AS $$
  SELECT pg_catalog.encode(
    pg_catalog.set_bit(
      pg_catalog.set_bit(
        pg_catalog.overlay(
          pg_catalog.uuid_send(pg_catalog.gen_random_uuid()),
          pg_catalog.substr(
            pg_catalog.int8send(
              pg_catalog.floor(
                pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000)::bigint),
            3),
          1, 6),
        52, 1),
      53, 1),
    'hex')::uuid
$$;

-- Room in each page for the one later version of a row that `routed_at` makes: without it every
-- mark would also write into all three indexes. What a row has to be is checked by its insert trigger
-- and not by CHECKs: the server reads the text of each CHECK anew for every statement, and fourteen
-- of them took as long as everything else about an insert. No column but routed_at ever changes.
CREATE TABLE {schema}{prefix}outbox_events (
  seq bigint NOT NULL,
  xid xid8 NOT NULL,
  id uuid NOT NULL DEFAULT {schema}{prefix}outbox_uuidv7(),
  aggregate_type text,
  aggregate_id text,
  aggregate_version bigint,
  type text NOT NULL,
  payload text,
  payload_bytes bytea,
  content_type text NOT NULL DEFAULT 'application/json',
  headers text,
  slot smallint NOT NULL,
  available_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  routed_at timestamptz,
  CONSTRAINT {prefix}outbox_events_pkey PRIMARY KEY (seq),
  CONSTRAINT {prefix}outbox_events_id_key UNIQUE (id)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX {prefix}outbox_events_xid_idx
  ON {schema}{prefix}outbox_events (xid);

CREATE UNIQUE INDEX {prefix}outbox_events_aggregate_version_key
  ON {schema}{prefix}outbox_events (aggregate_type, aggregate_id, aggregate_version)
  WHERE aggregate_version IS NOT NULL;

-- Takes an aggregate's lock for the rest of the transaction, unless `postrider.ordering` is off.
--
-- 1349743988 is our class in the two-integer lock space. A transaction locks its first 512
-- aggregates: each lock takes shared memory of the whole server, and a transaction that takes it all
-- would fail everybody's. Which ones it holds is kept as one text, nine characters each, in a setting
-- that ends with the transaction and that a rollback to a savepoint takes back with the locks.
CREATE FUNCTION {schema}{prefix}outbox_lock_aggregate(lock_key integer)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
  held text := coalesce(pg_catalog.current_setting('postrider.locked_aggregates', true), '');
  entry text := ',' || pg_catalog.lpad(pg_catalog.to_hex(lock_key), 8, '0');
BEGIN
  IF pg_catalog.strpos(held, entry) = 0
     AND pg_catalog.length(held) < 9 * 512
     AND pg_catalog.current_setting('postrider.ordering', true) IS DISTINCT FROM 'off' THEN
    PERFORM pg_catalog.pg_advisory_xact_lock(1349743988, lock_key);
    PERFORM pg_catalog.set_config('postrider.locked_aggregates', held || entry, true);
  END IF;
END
$$;

-- Refuses what could not be delivered, and makes the order in which events of an aggregate are
-- numbered the order in which they commit:
--   1. the aggregate's lock, held to the end of the transaction;
--   2. the transaction's xid, so that whoever sees a later number finds this one's owner in flight;
--   3. the number.
-- Every writer pays for this: functions are called in expressions, as PERFORM would run a query for
-- each, and what outbox_lock_aggregate does is written out again.
CREATE FUNCTION {schema}{prefix}outbox_events_before_insert()
RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
  most_payload_bytes CONSTANT integer := 67108864;
  name text := NEW.aggregate_type || '/' || NEW.aggregate_id;
  names text := NEW.type || NEW.content_type || coalesce(name, '');
  broken_rule text := CASE
    WHEN (NEW.aggregate_type IS NULL) <> (NEW.aggregate_id IS NULL)
      THEN 'aggregate_has_type_and_id_or_neither'
    WHEN name IS NULL AND NEW.aggregate_version IS NOT NULL
      THEN 'aggregate_version_needs_an_aggregate'
    WHEN '' IN (NEW.type, NEW.content_type, NEW.aggregate_type, NEW.aggregate_id)
      OR (
        pg_catalog.octet_length(names) > 255
        AND greatest(
          pg_catalog.octet_length(NEW.type),
          pg_catalog.octet_length(NEW.content_type),
          pg_catalog.octet_length(NEW.aggregate_type),
          pg_catalog.octet_length(NEW.aggregate_id)) > 255)
      THEN 'names_have_1_to_255_bytes'
    WHEN names COLLATE "C" ~ '[\x01-\x1f\x7f]'
      THEN 'names_have_no_control_characters'
    WHEN NEW.payload IS NOT NULL AND NEW.payload_bytes IS NOT NULL
      THEN 'payload_stands_in_one_column'
    WHEN pg_catalog.octet_length(NEW.payload) > most_payload_bytes
      OR pg_catalog.octet_length(NEW.payload_bytes) > most_payload_bytes
      THEN 'payload_has_at_most_64_mib'
    -- The text itself is kept, never what a cast would make of it.
    WHEN pg_catalog.json_typeof(NEW.headers::json) <> 'object'
      THEN 'headers_are_a_json_object'
    WHEN NOT pg_catalog.isfinite(NEW.available_at)
      THEN 'available_at_is_a_time'
  END;
  held text;
  entry text;
  locked boolean;
BEGIN
  IF broken_rule IS NOT NULL THEN
    RAISE EXCEPTION 'this event could not be delivered: %', broken_rule
    USING ERRCODE = 'check_violation', CONSTRAINT = broken_rule, TABLE = TG_TABLE_NAME;
  END IF;
  IF name IS NULL THEN
    name := NEW.id::text;
  ELSE
    held := coalesce(pg_catalog.current_setting('postrider.locked_aggregates', true), '');
    entry := ',' || pg_catalog.lpad(pg_catalog.to_hex(pg_catalog.hashtext(name)), 8, '0');
    locked := pg_catalog.strpos(held, entry) > 0
      OR pg_catalog.length(held) >= 9 * 512
      OR pg_catalog.current_setting('postrider.ordering', true) IS NOT DISTINCT FROM 'off'
      OR pg_catalog.pg_advisory_xact_lock(1349743988, pg_catalog.hashtext(name)) IS NULL
      OR pg_catalog.set_config('postrider.locked_aggregates', held || entry, true) IS NULL;
  END IF;
  NEW.slot := ('x' || pg_catalog.left(pg_catalog.md5(name), 4))::bit(16)::integer >> 2;
  NEW.xid := pg_catalog.pg_current_xact_id();
  IF NEW.seq IS NULL
     OR pg_catalog.current_setting('postrider.import', true) IS DISTINCT FROM 'on' THEN
    NEW.seq := pg_catalog.nextval('{schema}{prefix}outbox_events_seq'::regclass);
  ELSIF NEW.seq < 1 THEN
    RAISE EXCEPTION 'a number is positive'
    USING ERRCODE = 'check_violation', CONSTRAINT = 'seq_is_positive', TABLE = TG_TABLE_NAME;
  END IF;
  -- An event that a relay has sent must not vanish in a crash.
  IF pg_catalog.current_setting('synchronous_commit') = 'off' THEN
    PERFORM pg_catalog.set_config('synchronous_commit', 'local', true);
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER {prefix}outbox_events_before_insert
  BEFORE INSERT ON {schema}{prefix}outbox_events
  FOR EACH ROW
  EXECUTE FUNCTION {schema}{prefix}outbox_events_before_insert();

-- Refuses a change that would rewrite history.
CREATE FUNCTION {schema}{prefix}outbox_refuse_change()
RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'PR002', TABLE = TG_TABLE_NAME;
END
$$;

-- AFTER and not BEFORE: a BEFORE UPDATE trigger of a table makes every update lock its row first,
-- with a record in the log, whether the trigger fires or not.
CREATE TRIGGER {prefix}outbox_events_are_immutable
  AFTER UPDATE OF seq, xid, id, aggregate_type, aggregate_id, aggregate_version, type, payload,
    payload_bytes, content_type, headers, slot, available_at, created_at
  ON {schema}{prefix}outbox_events
  FOR EACH ROW
  EXECUTE FUNCTION {schema}{prefix}outbox_refuse_change(
    'events are immutable: write a new event instead');

CREATE TRIGGER {prefix}outbox_events_are_routed_once
  AFTER UPDATE OF routed_at ON {schema}{prefix}outbox_events
  FOR EACH ROW
  WHEN (OLD.routed_at IS NOT NULL)
  EXECUTE FUNCTION {schema}{prefix}outbox_refuse_change(
    'events are routed once: write a new event instead');

CREATE TABLE {schema}{prefix}outbox_deliveries (
  id uuid NOT NULL,
  event_seq bigint NOT NULL,
  event_id uuid NOT NULL,
  route text NOT NULL,
  slot smallint NOT NULL,
  ordering_key text,
  status text NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  retry_delays text NOT NULL,
  timeout_ms bigint NOT NULL,
  on_failed text NOT NULL,
  dispatch_id uuid,
  available_at timestamptz NOT NULL,
  dispatched_at timestamptz,
  delivery_timeout_at timestamptz,
  finished_at timestamptz,
  failure_code text NOT NULL DEFAULT '',
  failure_detail text NOT NULL DEFAULT '',
  ambiguous boolean NOT NULL DEFAULT false,
  generation integer NOT NULL DEFAULT 1,
  current boolean NOT NULL DEFAULT true,
  CONSTRAINT {prefix}outbox_deliveries_pkey PRIMARY KEY (id),
  CONSTRAINT {prefix}outbox_deliveries_event_seq_fkey FOREIGN KEY (event_seq)
    REFERENCES {schema}{prefix}outbox_events (seq),
  CONSTRAINT {prefix}outbox_deliveries_event_route_generation_key
    UNIQUE (event_seq, route, generation),
  CONSTRAINT slot_has_14_bits CHECK (slot BETWEEN 0 AND 16383),
  CONSTRAINT status_is_known CHECK (status IN (
    'held', 'pending', 'dispatched', 'completed', 'failed', 'discarded', 'cancelled')),
  CONSTRAINT retry_delays_are_a_json_array CHECK (json_typeof(retry_delays::json) = 'array'),
  CONSTRAINT attempts_fit_the_delays CHECK (
    attempts BETWEEN 0 AND json_array_length(retry_delays::json) + 1),
  CONSTRAINT timeout_is_not_negative CHECK (timeout_ms >= 0),
  CONSTRAINT on_failed_is_known CHECK (on_failed IN ('halt', 'skip', 'stop')),
  CONSTRAINT generation_is_positive CHECK (generation > 0),
  CONSTRAINT route_is_empty_exactly_while_held CHECK ((route = '') = (status = 'held')),
  CONSTRAINT finished_at_is_set_exactly_when_final CHECK (
    (finished_at IS NOT NULL) = (status IN ('completed', 'failed', 'discarded', 'cancelled'))),
  CONSTRAINT dispatched_rows_have_a_dispatch_and_a_deadline CHECK (
    (status = 'dispatched') = (delivery_timeout_at IS NOT NULL)
    AND (status <> 'dispatched' OR (dispatch_id IS NOT NULL AND dispatched_at IS NOT NULL))),
  CONSTRAINT only_failed_rows_become_history CHECK (current OR status = 'failed')
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

CREATE UNIQUE INDEX {prefix}outbox_deliveries_current_key
  ON {schema}{prefix}outbox_deliveries (event_seq, route)
  WHERE current;

-- Who holds back what: a pending row until its time, any taken or dead one at once.
CREATE INDEX {prefix}outbox_deliveries_waiting_heads_idx
  ON {schema}{prefix}outbox_deliveries (ordering_key, route, available_at)
  WHERE current AND status = 'pending' AND ordering_key IS NOT NULL;

CREATE INDEX {prefix}outbox_deliveries_taken_heads_idx
  ON {schema}{prefix}outbox_deliveries (ordering_key, route, event_seq)
  WHERE current
    AND ordering_key IS NOT NULL
    AND (status = 'dispatched' OR (status = 'failed' AND on_failed = 'halt'));

-- What may be attempted, in the order of events.
CREATE INDEX {prefix}outbox_deliveries_open_idx
  ON {schema}{prefix}outbox_deliveries (event_seq)
  WHERE current AND status IN ('pending', 'dispatched');

-- When to look again.
CREATE INDEX {prefix}outbox_deliveries_due_idx
  ON {schema}{prefix}outbox_deliveries (available_at)
  WHERE current AND status = 'pending';

CREATE INDEX {prefix}outbox_deliveries_timeout_idx
  ON {schema}{prefix}outbox_deliveries (delivery_timeout_at)
  WHERE status = 'dispatched';

CREATE INDEX {prefix}outbox_deliveries_held_idx
  ON {schema}{prefix}outbox_deliveries (event_seq)
  WHERE status = 'held';

-- Dead letters, as people list them.
CREATE INDEX {prefix}outbox_deliveries_failed_idx
  ON {schema}{prefix}outbox_deliveries (event_seq)
  WHERE current AND status = 'failed';

CREATE TRIGGER {prefix}outbox_deliveries_final_stays_final
  AFTER UPDATE OF status ON {schema}{prefix}outbox_deliveries
  FOR EACH ROW
  WHEN (OLD.status IN ('completed', 'failed', 'discarded', 'cancelled')
    AND NEW.status <> OLD.status
    AND NOT (OLD.current AND OLD.status = 'failed' AND NEW.status = 'discarded'))
  EXECUTE FUNCTION {schema}{prefix}outbox_refuse_change(
    'a final delivery does not change: use postrider dead retry or discard');

-- The only lease state there is. A token is never lowered, also not when a lease is given back.
CREATE TABLE {schema}{prefix}outbox_partitions (
  partition integer NOT NULL,
  owner text,
  token bigint NOT NULL DEFAULT 0,
  leased_until timestamptz,
  position bigint,
  in_flight text,
  server_identity text,
  generation bigint NOT NULL DEFAULT 0,
  crashes integer NOT NULL DEFAULT 0,
  probe_seq bigint,
  session_lock integer,
  CONSTRAINT {prefix}outbox_partitions_pkey PRIMARY KEY (partition),
  CONSTRAINT partition_is_not_negative CHECK (partition >= 0),
  CONSTRAINT owner_and_end_of_lease_come_together CHECK (
    (owner IS NULL) = (leased_until IS NULL)),
  CONSTRAINT crashes_are_counted_from_0 CHECK (crashes >= 0),
  CONSTRAINT session_lock_is_an_owners CHECK (session_lock IS NULL OR owner IS NOT NULL),
  CONSTRAINT a_mark_is_whole CHECK (
    (position IS NULL) = (in_flight IS NULL)
    AND (position IS NULL) = (server_identity IS NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500);

INSERT INTO {schema}{prefix}outbox_partitions (partition)
SELECT number
FROM generate_series(0, {partitions} - 1) AS number;

CREATE TRIGGER {prefix}outbox_partitions_token_ascends
  AFTER UPDATE OF token, generation ON {schema}{prefix}outbox_partitions
  FOR EACH ROW
  WHEN (NEW.token < OLD.token OR NEW.generation < OLD.generation)
  EXECUTE FUNCTION {schema}{prefix}outbox_refuse_change(
    'the token and the generation of a partition never go back');

-- Locks the rows of a settle's partitions, in partition order, and ends the transaction when one of
-- them is not the caller's any more. The lock is what fences: a comparison alone would be true for
-- a moment only. `exclusive` when the transaction will also write to these rows: two that share a
-- lock and then both want to write would wait for each other.
CREATE FUNCTION {schema}{prefix}outbox_fence(
  partitions integer[],
  tokens bigint[],
  exclusive boolean)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
  lost text;
BEGIN
  -- A row that had to be waited for is compared as it is after the wait.
  IF exclusive THEN
    WITH held AS MATERIALIZED (
      SELECT p.partition, p.token, p.owner
      FROM {schema}{prefix}outbox_partitions AS p
      WHERE p.partition = ANY (partitions)
      ORDER BY p.partition
      FOR NO KEY UPDATE OF p)
    SELECT pg_catalog.string_agg(l.partition::text, ',' ORDER BY l.partition)
    INTO lost
    FROM unnest(partitions, tokens) AS l (partition, token)
      LEFT JOIN held AS h ON h.partition = l.partition
    WHERE h.token IS DISTINCT FROM l.token
      OR h.owner IS NULL;
  ELSE
    WITH held AS MATERIALIZED (
      SELECT p.partition, p.token, p.owner
      FROM {schema}{prefix}outbox_partitions AS p
      WHERE p.partition = ANY (partitions)
      ORDER BY p.partition
      FOR SHARE OF p)
    SELECT pg_catalog.string_agg(l.partition::text, ',' ORDER BY l.partition)
    INTO lost
    FROM unnest(partitions, tokens) AS l (partition, token)
      LEFT JOIN held AS h ON h.partition = l.partition
    WHERE h.token IS DISTINCT FROM l.token
      OR h.owner IS NULL;
  END IF;
  IF lost IS NOT NULL THEN
    RAISE EXCEPTION 'partitions are leased to somebody else' USING ERRCODE = 'PR001', DETAIL = lost;
  END IF;
END
$$;

-- Routes that wait: paused by a person, or stopped by a dead letter.
CREATE TABLE {schema}{prefix}outbox_routes (
  route text NOT NULL,
  kind text NOT NULL,
  paused_by text NOT NULL,
  reason text NOT NULL,
  paused_at timestamptz NOT NULL,
  CONSTRAINT {prefix}outbox_routes_pkey PRIMARY KEY (route),
  CONSTRAINT route_is_not_empty CHECK (route <> ''),
  CONSTRAINT kind_is_known CHECK (kind IN ('paused', 'stopped'))
);

-- What people did. Insert-only.
CREATE TABLE {schema}{prefix}postrider_audit (
  id bigint GENERATED ALWAYS AS IDENTITY,
  at timestamptz NOT NULL,
  who text NOT NULL,
  action text NOT NULL,
  object text NOT NULL,
  reason text NOT NULL,
  detail text NOT NULL DEFAULT '',
  CONSTRAINT {prefix}postrider_audit_pkey PRIMARY KEY (id)
);

CREATE TRIGGER {prefix}postrider_audit_is_not_changed
  BEFORE UPDATE ON {schema}{prefix}postrider_audit
  FOR EACH ROW
  EXECUTE FUNCTION {schema}{prefix}outbox_refuse_change(
    'the audit is not changed: it only grows');

-- The compact shape: one row per event with the time at which it left. As a view of one table it
-- takes INSERT (event_type, payload) as well. Bytes stand in outbox_events.payload_bytes.
CREATE VIEW {schema}{prefix}outbox (id, event_type, payload, created_at, sent_at) AS
SELECT seq, type, payload, created_at, routed_at
FROM {schema}{prefix}outbox_events;
