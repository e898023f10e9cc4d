-- The outbox: events, their deliveries, the lease of the relay, paused routes, the audit.
--
-- Locks: creates new tables only; other writers of the file wait for its one short transaction.
--
-- Times are TEXT of fixed width in UTC, 'YYYY-MM-DDTHH:MM:SS.ffffffZ', so that they compare as text.
-- SQLite's own clock has milliseconds, hence the '000' behind it.
--
-- There is no slot column. SQLite lets one transaction write at a time, so the order of seq is the
-- order of commits and one relay can carry everything: the whole outbox is partition 0.

-- What happened. Insert-only; routed_at, set once by the relay, is the single column that changes.
-- The default id is a UUIDv7: 48 bits of milliseconds, then random bits around version and variant.
-- AUTOINCREMENT: a deleted highest seq is never given out again. The payload stands last, so that
-- reading the other columns does not walk over it.
CREATE TABLE {prefix}outbox_events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT
    CONSTRAINT seq_is_positive CHECK (seq > 0),
  id TEXT NOT NULL UNIQUE DEFAULT (
      printf('%s-%s-7%s-%s%s-%s',
        substr(printf('%012x', CAST(strftime('%s', 'now') AS INTEGER) * 1000
          + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER)), 1, 8),
        substr(printf('%012x', CAST(strftime('%s', 'now') AS INTEGER) * 1000
          + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER)), 9, 4),
        substr(lower(hex(randomblob(2))), 1, 3),
        substr('89ab', 1 + (random() & 3), 1),
        substr(lower(hex(randomblob(2))), 1, 3),
        lower(hex(randomblob(6)))))
    CONSTRAINT id_is_a_lower_case_uuid CHECK (
      id GLOB '????????-????-????-????-????????????'
      AND replace(id, '-', '') NOT GLOB '*[^0-9a-f]*'
      AND length(replace(id, '-', '')) = 32),
  aggregate_type TEXT
    CONSTRAINT aggregate_type_has_1_to_255_bytes CHECK (
      length(CAST(aggregate_type AS BLOB)) BETWEEN 1 AND 255)
    CONSTRAINT aggregate_type_has_no_control_characters CHECK (
      aggregate_type NOT GLOB '*[' || char(1, 45, 31, 127) || ']*'
      AND instr(aggregate_type, char(0)) = 0),
  aggregate_id TEXT
    CONSTRAINT aggregate_id_has_1_to_255_bytes CHECK (
      length(CAST(aggregate_id AS BLOB)) BETWEEN 1 AND 255)
    CONSTRAINT aggregate_id_has_no_control_characters CHECK (
      aggregate_id NOT GLOB '*[' || char(1, 45, 31, 127) || ']*'
      AND instr(aggregate_id, char(0)) = 0),
  aggregate_version INTEGER
    CONSTRAINT aggregate_version_needs_an_aggregate CHECK (
      aggregate_version IS NULL OR aggregate_type IS NOT NULL),
  type TEXT NOT NULL
    CONSTRAINT type_has_1_to_255_bytes CHECK (length(CAST(type AS BLOB)) BETWEEN 1 AND 255)
    CONSTRAINT type_has_no_control_characters CHECK (
      type NOT GLOB '*[' || char(1, 45, 31, 127) || ']*'
      AND instr(type, char(0)) = 0),
  content_type TEXT NOT NULL DEFAULT 'application/json'
    CONSTRAINT content_type_has_1_to_255_bytes CHECK (
      length(CAST(content_type AS BLOB)) BETWEEN 1 AND 255)
    CONSTRAINT content_type_has_no_control_characters CHECK (
      content_type NOT GLOB '*[' || char(1, 45, 31, 127) || ']*'
      AND instr(content_type, char(0)) = 0),
  available_at TEXT
    CONSTRAINT available_at_is_a_time CHECK (
      available_at IS NULL OR julianday(available_at) IS NOT NULL),
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z')
    CONSTRAINT created_at_is_utc_with_microseconds CHECK (
      created_at GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  routed_at TEXT
    CONSTRAINT routed_at_is_utc_with_microseconds CHECK (
      routed_at IS NULL
      OR routed_at GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  headers TEXT
    CONSTRAINT headers_are_a_json_object CHECK (
      headers IS NULL
      OR CASE WHEN json_valid(headers) THEN json_type(headers) = 'object' ELSE 0 END),
  payload ANY
    CONSTRAINT payload_is_text_or_blob CHECK (typeof(payload) IN ('null', 'text', 'blob'))
    CONSTRAINT payload_has_at_most_64_mib CHECK (
      payload IS NULL OR length(CAST(payload AS BLOB)) <= 67108864),
  payload_bytes BLOB
    CONSTRAINT payload_bytes_has_at_most_64_mib CHECK (
      payload_bytes IS NULL OR length(payload_bytes) <= 67108864),
  CONSTRAINT aggregate_has_type_and_id_or_neither CHECK (
    (aggregate_type IS NULL) = (aggregate_id IS NULL)),
  CONSTRAINT payload_stands_in_one_column CHECK (
    payload IS NULL OR payload_bytes IS NULL)
) STRICT;

CREATE UNIQUE INDEX {prefix}outbox_events_version
  ON {prefix}outbox_events (aggregate_type, aggregate_id, aggregate_version)
  WHERE aggregate_version IS NOT NULL;

-- What the relay still has to read, so that neither an empty look nor `status` walks over history.
CREATE INDEX {prefix}outbox_events_unrouted
  ON {prefix}outbox_events (seq)
  WHERE routed_at IS NULL;

-- A number below the last one would be passed over by a relay that has read further.
CREATE TRIGGER {prefix}outbox_events_seq_ascends
BEFORE INSERT ON {prefix}outbox_events
WHEN NEW.seq > 0
  AND NEW.seq <= (SELECT s.seq FROM sqlite_sequence AS s WHERE s.name = '{prefix}outbox_events')
BEGIN
  SELECT RAISE(ABORT, 'seq has to ascend: leave it out and it is made');
END;

CREATE TRIGGER {prefix}outbox_events_are_immutable
BEFORE UPDATE OF seq, id, aggregate_type, aggregate_id, aggregate_version, type, payload,
  payload_bytes, content_type, headers, available_at, created_at
ON {prefix}outbox_events
BEGIN
  SELECT RAISE(ABORT, 'events are immutable: write a new event instead');
END;

-- The second condition catches an UPDATE that calls seq by its other names (rowid, oid).
CREATE TRIGGER {prefix}outbox_events_are_routed_once
BEFORE UPDATE ON {prefix}outbox_events
WHEN OLD.routed_at IS NOT NULL OR NEW.seq IS NOT OLD.seq
BEGIN
  SELECT RAISE(ABORT, 'events are immutable and routed once: write a new event instead');
END;

-- One event on one route. The policy is a copy: later configuration does not change it.
-- current is 1 on the latest generation only. Held rows have no route yet.
CREATE TABLE {prefix}outbox_deliveries (
  id TEXT NOT NULL PRIMARY KEY
    CONSTRAINT id_is_a_lower_case_uuid CHECK (
      id GLOB '????????-????-????-????-????????????'
      AND replace(id, '-', '') NOT GLOB '*[^0-9a-f]*'
      AND length(replace(id, '-', '')) = 32),
  event_seq INTEGER NOT NULL REFERENCES {prefix}outbox_events (seq),
  event_id TEXT NOT NULL,
  route TEXT NOT NULL,
  ordering_key TEXT,
  status TEXT NOT NULL
    CONSTRAINT status_is_known CHECK (status IN (
      'held', 'pending', 'dispatched', 'completed', 'failed', 'discarded', 'cancelled')),
  attempts INTEGER NOT NULL DEFAULT 0,
  retry_delays TEXT NOT NULL DEFAULT '[]'
    CONSTRAINT retry_delays_are_a_json_array CHECK (
      CASE WHEN json_valid(retry_delays) THEN json_type(retry_delays) = 'array' ELSE 0 END),
  timeout_ms INTEGER NOT NULL DEFAULT 0
    CONSTRAINT timeout_is_not_negative CHECK (timeout_ms >= 0),
  on_failed TEXT NOT NULL DEFAULT 'halt'
    CONSTRAINT on_failed_is_known CHECK (on_failed IN ('halt', 'skip', 'stop')),
  dispatch_id TEXT
    CONSTRAINT dispatch_id_is_a_lower_case_uuid CHECK (
      dispatch_id IS NULL
      OR (dispatch_id GLOB '????????-????-????-????-????????????'
        AND replace(dispatch_id, '-', '') NOT GLOB '*[^0-9a-f]*'
        AND length(replace(dispatch_id, '-', '')) = 32)),
  available_at TEXT NOT NULL,
  dispatched_at TEXT,
  delivery_timeout_at TEXT,
  finished_at TEXT,
  failure_code TEXT NOT NULL DEFAULT '',
  failure_detail TEXT NOT NULL DEFAULT '',
  ambiguous INTEGER NOT NULL DEFAULT 0
    CONSTRAINT ambiguous_is_0_or_1 CHECK (ambiguous IN (0, 1)),
  generation INTEGER NOT NULL DEFAULT 1
    CONSTRAINT generation_is_positive CHECK (generation > 0),
  current INTEGER NOT NULL DEFAULT 1
    CONSTRAINT current_is_0_or_1 CHECK (current IN (0, 1)),
  CONSTRAINT attempts_fit_the_delays CHECK (
    attempts BETWEEN 0 AND json_array_length(retry_delays) + 1),
  CONSTRAINT route_is_empty_exactly_while_held CHECK ((route = '') = (status = 'held')),
  CONSTRAINT finished_at_is_set_exactly_when_final CHECK (
    (finished_at IS NOT NULL) = (status IN ('completed', 'failed', 'discarded', 'cancelled'))),
  CONSTRAINT dispatched_rows_have_a_dispatch_and_a_deadline CHECK (
    status <> 'dispatched'
    OR (dispatch_id IS NOT NULL AND dispatched_at IS NOT NULL
      AND delivery_timeout_at IS NOT NULL)),
  CONSTRAINT pending_rows_have_no_deadline CHECK (
    status <> 'pending' OR (dispatched_at IS NULL AND delivery_timeout_at IS NULL)),
  CONSTRAINT only_failed_rows_become_history CHECK (current = 1 OR status = 'failed'),
  CONSTRAINT event_route_generation_is_unique UNIQUE (event_seq, route, generation)
) STRICT;

CREATE UNIQUE INDEX {prefix}outbox_deliveries_current
  ON {prefix}outbox_deliveries (event_seq, route)
  WHERE current = 1;

-- Who stands before whom. Statements repeat the condition word for word, or SQLite does not use it.
CREATE INDEX {prefix}outbox_deliveries_blocking
  ON {prefix}outbox_deliveries (route, ordering_key, event_seq)
  WHERE current = 1
    AND (status IN ('pending', 'dispatched') OR (status = 'failed' AND on_failed = 'halt'));

-- All that is looked at before a row is chosen stands in the index itself.
CREATE INDEX {prefix}outbox_deliveries_pending
  ON {prefix}outbox_deliveries (route, event_seq, available_at, ordering_key, status)
  WHERE status = 'pending';

CREATE INDEX {prefix}outbox_deliveries_dispatched
  ON {prefix}outbox_deliveries (route, delivery_timeout_at)
  WHERE status = 'dispatched';

CREATE INDEX {prefix}outbox_deliveries_held
  ON {prefix}outbox_deliveries (event_seq)
  WHERE status = 'held';

CREATE INDEX {prefix}outbox_deliveries_dead
  ON {prefix}outbox_deliveries (event_seq, route)
  WHERE status = 'failed' AND current = 1;

-- A final row stays what it is; only a person may still give up a dead letter.
CREATE TRIGGER {prefix}outbox_deliveries_final_stays_final
BEFORE UPDATE OF status ON {prefix}outbox_deliveries
WHEN OLD.status IN ('completed', 'failed', 'discarded', 'cancelled')
  AND NEW.status <> OLD.status
  AND NOT (OLD.status = 'failed' AND NEW.status = 'discarded')
BEGIN
  SELECT RAISE(ABORT, 'a final delivery does not change: use postrider dead retry or discard');
END;

-- The lease. token outlives every owner; generation counts what people changed.
CREATE TABLE {prefix}outbox_partitions (
  partition INTEGER NOT NULL PRIMARY KEY
    CONSTRAINT there_is_one_partition CHECK (partition = 0),
  owner TEXT,
  token INTEGER NOT NULL DEFAULT 0,
  leased_until TEXT,
  mark TEXT NOT NULL DEFAULT '',
  generation INTEGER NOT NULL DEFAULT 0,
  crashes INTEGER NOT NULL DEFAULT 0
    CONSTRAINT crashes_are_counted_from_0 CHECK (crashes >= 0),
  probe_seq INTEGER,
  CONSTRAINT owner_and_end_of_lease_come_together CHECK (
    (owner IS NULL) = (leased_until IS NULL))
) STRICT;

INSERT INTO {prefix}outbox_partitions (partition)
VALUES (0);

-- Tokens and generations only grow, whoever writes.
CREATE TRIGGER {prefix}outbox_partitions_token_ascends
BEFORE UPDATE OF token, generation ON {prefix}outbox_partitions
WHEN NEW.token < OLD.token OR NEW.generation < OLD.generation
BEGIN
  SELECT RAISE(ABORT, 'the token and the generation of a partition never go back');
END;

-- Routes that wait: paused by a person, or stopped by a dead letter.
CREATE TABLE {prefix}outbox_routes (
  route TEXT NOT NULL PRIMARY KEY
    CONSTRAINT route_is_not_empty CHECK (route <> ''),
  kind TEXT NOT NULL
    CONSTRAINT kind_is_known CHECK (kind IN ('paused', 'stopped')),
  paused_by TEXT NOT NULL,
  reason TEXT NOT NULL,
  paused_at TEXT NOT NULL
) STRICT;

-- What people did. Insert-only.
CREATE TABLE {prefix}postrider_audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at TEXT NOT NULL,
  who TEXT NOT NULL,
  action TEXT NOT NULL,
  object TEXT NOT NULL,
  reason TEXT NOT NULL,
  detail TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TRIGGER {prefix}postrider_audit_is_not_changed
BEFORE UPDATE ON {prefix}postrider_audit
BEGIN
  SELECT RAISE(ABORT, 'the audit is not changed: it only grows');
END;

-- The compact shape: one row per event with the time at which it left.
CREATE VIEW {prefix}outbox (id, event_type, payload, created_at, sent_at) AS
SELECT seq, type, coalesce(payload, payload_bytes), created_at, routed_at
FROM {prefix}outbox_events;

CREATE TRIGGER {prefix}outbox_insert
INSTEAD OF INSERT ON {prefix}outbox
BEGIN
  INSERT INTO {prefix}outbox_events (type, payload)
  VALUES (NEW.event_type, NEW.payload);
END;
