-- The outbox: events, deliveries, partitions, routes, audit, and the compact view.
--
-- Locks: none that anybody could wait for, as it only creates objects. MariaDB commits each statement
-- by itself, so each can be run again after a migration that was killed midway.
-- Writers need INSERT on outbox_events and nothing else: the trigger runs with the rights of whoever
-- ran this migration. Where the binary log is on, creating a trigger needs SUPER, or
-- log_bin_trust_function_creators = 1 on the server.
--
-- Times are UTC. Texts that tell one thing from another are compared as bytes, and without padding:
-- 'abc', 'ABC' and 'abc ' are three. Ids are 36 characters, so that every shell and driver can read
-- and write them. Names of events have a column of one character more than they may have bytes: a
-- session that is not strict would cut a longer one without a word, and what it leaves is too long
-- still. The file can be given to the `mariadb` shell as it is.
--
-- Expressions of columns and rules name their character set: the server keeps them parsed by the set
-- of whichever session opened the table first, and would refuse the mix with another session's.

-- The numbers of events, in the order of writing within an aggregate. NOCACHE would write to the log
-- for each number; a crash of the server may leave a hole of as many as are cached.
CREATE SEQUENCE IF NOT EXISTS {prefix}outbox_events_seq
  START WITH 1 INCREMENT BY 1 MINVALUE 1 CACHE 1000 ENGINE = InnoDB;

-- One row per aggregate that ever had an event: whoever writes for it holds this row until its
-- transaction ends, so within an aggregate seq is the order of commits. The row itself never
-- changes: a writer with an older snapshot would be refused (error 1020).
CREATE TABLE IF NOT EXISTS {prefix}outbox_aggregates (
  aggregate_hash BINARY(16) NOT NULL,
  PRIMARY KEY (aggregate_hash)
) ENGINE = InnoDB;

-- What happened. Insert-only; routed_at, set once by the relay, is the single column that changes.
-- The default id is a UUIDv7: 48 bits of milliseconds, then random bits around version and variant.
CREATE TABLE IF NOT EXISTS {prefix}outbox_events (
  seq BIGINT NOT NULL DEFAULT 0,
  id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT (
    lower(concat(
      insert(
        lpad(convert(hex(cast(unix_timestamp(sysdate(3)) * 1000 AS UNSIGNED)) USING ascii), 12,
          _ascii'0'),
        9, 0, _ascii'-'),
      _ascii'-7', substr(convert(hex(random_bytes(2)) USING ascii), 2), _ascii'-',
      substr(_ascii'89ab', 1 + floor(rand() * 4), 1),
      substr(convert(hex(random_bytes(2)) USING ascii), 2), _ascii'-',
      convert(hex(random_bytes(6)) USING ascii)))),
  aggregate_type VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NULL,
  aggregate_id VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NULL,
  aggregate_version BIGINT NULL,
  type VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  content_type VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL
    DEFAULT 'application/json',
  slot SMALLINT NOT NULL DEFAULT 0,
  available_at DATETIME(6) NULL,
  created_at DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6)),
  routed_at DATETIME(6) NULL,
  headers MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  payload LONGBLOB NULL,
  payload_bytes LONGBLOB NULL,
  PRIMARY KEY (seq),
  CONSTRAINT {prefix}outbox_events_id_key UNIQUE (id),
  CONSTRAINT {prefix}outbox_events_version_key
    UNIQUE (aggregate_type, aggregate_id, aggregate_version),
  KEY {prefix}outbox_events_unrouted_idx (routed_at, seq),
  CONSTRAINT seq_is_positive CHECK (seq > 0),
  CONSTRAINT id_is_a_lower_case_uuid CHECK (
    id REGEXP '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'),
  CONSTRAINT slot_has_14_bits CHECK (slot BETWEEN 0 AND 16383),
  CONSTRAINT aggregate_has_type_and_id_or_neither CHECK (
    (aggregate_type IS NULL) = (aggregate_id IS NULL)),
  CONSTRAINT aggregate_version_needs_an_aggregate CHECK (
    aggregate_version IS NULL OR aggregate_type IS NOT NULL),
  CONSTRAINT aggregate_type_has_1_to_255_bytes CHECK (octet_length(aggregate_type) BETWEEN 1 AND 255),
  CONSTRAINT aggregate_id_has_1_to_255_bytes CHECK (octet_length(aggregate_id) BETWEEN 1 AND 255),
  CONSTRAINT type_has_1_to_255_bytes CHECK (octet_length(type) BETWEEN 1 AND 255),
  CONSTRAINT content_type_has_1_to_255_bytes CHECK (octet_length(content_type) BETWEEN 1 AND 255),
  CONSTRAINT aggregate_type_has_no_control_characters CHECK (
    NOT convert(hex(aggregate_type) USING ascii) REGEXP _ascii'^(..)*([01].|7F)'),
  CONSTRAINT aggregate_id_has_no_control_characters CHECK (
    NOT convert(hex(aggregate_id) USING ascii) REGEXP _ascii'^(..)*([01].|7F)'),
  CONSTRAINT type_has_no_control_characters CHECK (
    NOT convert(hex(type) USING ascii) REGEXP _ascii'^(..)*([01].|7F)'),
  CONSTRAINT content_type_has_no_control_characters CHECK (
    NOT convert(hex(content_type) USING ascii) REGEXP _ascii'^(..)*([01].|7F)'),
  CONSTRAINT payload_stands_in_one_column CHECK (payload IS NULL OR payload_bytes IS NULL),
  CONSTRAINT payload_has_at_most_64_mib CHECK (
    coalesce(octet_length(payload), octet_length(payload_bytes), 0) <= 67108864),
  CONSTRAINT headers_are_a_json_object CHECK (
    headers IS NULL OR (json_valid(headers) AND convert(json_type(headers) USING ascii) = _ascii'OBJECT'))
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- In this order: the aggregate's row is locked for the rest of the transaction, then the number is
-- drawn. @postrider_ordering = 'off' skips the lock; a number that is given is overwritten unless
-- @postrider_import = 'on', and then it must be one that was drawn before.
DELIMITER //
CREATE OR REPLACE TRIGGER {prefix}outbox_events_before_insert
BEFORE INSERT ON {prefix}outbox_events
FOR EACH ROW
BEGIN
  DECLARE name VARBINARY(600) DEFAULT NEW.id;
  IF NEW.aggregate_type IS NOT NULL AND NEW.aggregate_id IS NOT NULL THEN
    SET name = concat(cast(NEW.aggregate_type AS BINARY), '/', cast(NEW.aggregate_id AS BINARY));
    IF NOT @postrider_ordering <=> 'off' THEN
      INSERT INTO {prefix}outbox_aggregates (aggregate_hash)
      VALUES (unhex(md5(name)))
      ON DUPLICATE KEY UPDATE aggregate_hash = VALUES(aggregate_hash);
    END IF;
  END IF;
  SET NEW.slot = conv(left(md5(name), 4), 16, 10) >> 2;
  IF NOT @postrider_import <=> 'on' OR NEW.seq = 0 THEN
    SET NEW.seq = NEXTVAL({prefix}outbox_events_seq);
  ELSEIF NEW.seq >= (SELECT next_not_cached_value FROM {prefix}outbox_events_seq) THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
      MESSAGE_TEXT = 'this number may be drawn later: raise the sequence with SETVAL first';
  END IF;
END
//
CREATE OR REPLACE TRIGGER {prefix}outbox_events_before_update
BEFORE UPDATE ON {prefix}outbox_events
FOR EACH ROW
BEGIN
  IF OLD.routed_at IS NOT NULL OR NEW.routed_at IS NULL
    OR NOT (NEW.seq <=> OLD.seq AND NEW.id <=> OLD.id AND NEW.aggregate_type <=> OLD.aggregate_type
      AND NEW.aggregate_id <=> OLD.aggregate_id AND NEW.type <=> OLD.type
      AND NEW.aggregate_version <=> OLD.aggregate_version
      AND NEW.content_type <=> OLD.content_type AND NEW.slot <=> OLD.slot
      AND NEW.available_at <=> OLD.available_at AND NEW.created_at <=> OLD.created_at
      AND NEW.headers <=> OLD.headers AND NEW.payload <=> OLD.payload
      AND NEW.payload_bytes <=> OLD.payload_bytes)
  THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
      MESSAGE_TEXT = 'events are immutable and routed once: write a new event instead';
  END IF;
END
//
DELIMITER ;

-- One event on one route. The policy is a copy: later configuration does not change it.
-- current is 1 on the latest generation only, and NULL on history, as MariaDB's unique keys count
-- NULL for nothing. Held rows have no route yet.
CREATE TABLE IF NOT EXISTS {prefix}outbox_deliveries (
  id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  event_seq BIGINT NOT NULL,
  event_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  route VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  slot SMALLINT NOT NULL DEFAULT 0,
  ordering_key VARCHAR(511) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NULL,
  status VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  attempts INT NOT NULL DEFAULT 0,
  retry_delays TEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  timeout_ms BIGINT NOT NULL DEFAULT 0,
  on_failed VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'halt',
  dispatch_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NULL,
  available_at DATETIME(6) NOT NULL,
  dispatched_at DATETIME(6) NULL,
  delivery_timeout_at DATETIME(6) NULL,
  finished_at DATETIME(6) NULL,
  failure_code VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL DEFAULT '',
  failure_detail TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL DEFAULT '',
  ambiguous TINYINT NOT NULL DEFAULT 0,
  generation INT NOT NULL DEFAULT 1,
  current TINYINT NULL DEFAULT 1,
  PRIMARY KEY (id),
  CONSTRAINT {prefix}outbox_deliveries_generation_key UNIQUE (event_seq, route, generation),
  CONSTRAINT {prefix}outbox_deliveries_current_key UNIQUE (event_seq, route, current),
  KEY {prefix}outbox_deliveries_heads_idx (ordering_key, status, event_seq),
  KEY {prefix}outbox_deliveries_status_idx (status, event_seq, available_at),
  KEY {prefix}outbox_deliveries_timeout_idx (status, delivery_timeout_at),
  CONSTRAINT {prefix}outbox_deliveries_event_seq_fkey FOREIGN KEY (event_seq)
    REFERENCES {prefix}outbox_events (seq),
  CONSTRAINT delivery_id_is_a_lower_case_uuid CHECK (
    id REGEXP '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'),
  CONSTRAINT status_is_known CHECK (status IN (
    'held', 'pending', 'dispatched', 'completed', 'failed', 'discarded', 'cancelled')),
  CONSTRAINT retry_delays_are_a_json_array CHECK (
    json_valid(retry_delays) AND json_type(retry_delays) = 'ARRAY'),
  CONSTRAINT attempts_fit_the_delays CHECK (
    attempts BETWEEN 0 AND json_length(retry_delays) + 1),
  CONSTRAINT timeout_is_not_negative CHECK (timeout_ms >= 0),
  CONSTRAINT on_failed_is_known CHECK (on_failed IN ('halt', 'skip', 'stop')),
  CONSTRAINT ambiguous_is_0_or_1 CHECK (ambiguous IN (0, 1)),
  CONSTRAINT generation_is_positive CHECK (generation > 0),
  CONSTRAINT current_is_1_or_null CHECK (current IS NULL OR current = 1),
  CONSTRAINT route_is_empty_exactly_while_held CHECK ((route = '') = (status = 'held')),
  CONSTRAINT finished_at_is_set_exactly_when_final CHECK (
    (finished_at IS NOT NULL) = (status IN ('completed', 'failed', 'discarded', 'cancelled'))),
  CONSTRAINT dispatched_rows_have_a_dispatch_and_a_deadline CHECK (
    (status = 'dispatched') = (delivery_timeout_at IS NOT NULL)
    AND (status <> 'dispatched' OR (dispatch_id IS NOT NULL AND dispatched_at IS NOT NULL))),
  CONSTRAINT only_failed_rows_become_history CHECK (current IS NOT NULL OR status = 'failed')
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- slot is a copy of the event's. A final row stays what it is; only a person may still give up a
-- dead letter.
DELIMITER //
CREATE OR REPLACE TRIGGER {prefix}outbox_deliveries_before_insert
BEFORE INSERT ON {prefix}outbox_deliveries
FOR EACH ROW
BEGIN
  SET NEW.slot = coalesce(
    (SELECT e.slot FROM {prefix}outbox_events AS e WHERE e.seq = NEW.event_seq), 0);
END
//
CREATE OR REPLACE TRIGGER {prefix}outbox_deliveries_before_update
BEFORE UPDATE ON {prefix}outbox_deliveries
FOR EACH ROW
BEGIN
  IF OLD.status IN ('completed', 'failed', 'discarded', 'cancelled') AND NEW.status <> OLD.status
    AND NOT (OLD.current <=> 1 AND OLD.status = 'failed' AND NEW.status = 'discarded')
  THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
      MESSAGE_TEXT = 'a final delivery does not change: use postrider dead retry or discard';
  END IF;
END
//
DELIMITER ;

-- The only lease state there is. A token is never lowered, also not when a lease is given back;
-- generation counts what people changed. session_lock is in the name of a lock of the owner's session
-- (GET_LOCK), which ends with it.
CREATE TABLE IF NOT EXISTS {prefix}outbox_partitions (
  `partition` INT NOT NULL,
  owner VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NULL,
  token BIGINT NOT NULL DEFAULT 0,
  leased_until DATETIME(6) NULL,
  mark MEDIUMTEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  generation BIGINT NOT NULL DEFAULT 0,
  crashes INT NOT NULL DEFAULT 0,
  probe_seq BIGINT NULL,
  session_lock INT NULL,
  PRIMARY KEY (`partition`),
  CONSTRAINT partition_is_not_negative CHECK (`partition` >= 0),
  CONSTRAINT owner_and_end_of_lease_come_together CHECK (
    (owner IS NULL) = (leased_until IS NULL)),
  CONSTRAINT crashes_are_counted_from_0 CHECK (crashes >= 0),
  CONSTRAINT session_lock_is_an_owners CHECK (session_lock IS NULL OR owner IS NOT NULL)
) ENGINE = InnoDB;

INSERT IGNORE INTO {prefix}outbox_partitions (`partition`)
WITH RECURSIVE numbers (number) AS (
  SELECT 0
  UNION ALL
  SELECT number + 1
  FROM numbers
  WHERE number + 1 < {partitions})
SELECT number
FROM numbers;

DELIMITER //
CREATE OR REPLACE TRIGGER {prefix}outbox_partitions_before_update
BEFORE UPDATE ON {prefix}outbox_partitions
FOR EACH ROW
BEGIN
  IF NEW.token < OLD.token OR NEW.generation < OLD.generation THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
      MESSAGE_TEXT = 'the token and the generation of a partition never go back';
  END IF;
END
//
DELIMITER ;

-- Routes that wait: paused by a person, or stopped by a dead letter.
CREATE TABLE IF NOT EXISTS {prefix}outbox_routes (
  route VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  kind VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  paused_by TEXT CHARACTER SET utf8mb4 NOT NULL,
  reason TEXT CHARACTER SET utf8mb4 NOT NULL,
  paused_at DATETIME(6) NOT NULL,
  PRIMARY KEY (route),
  CONSTRAINT route_is_not_empty CHECK (route <> ''),
  CONSTRAINT kind_is_known CHECK (kind IN ('paused', 'stopped'))
) ENGINE = InnoDB;

-- What people did. Insert-only.
CREATE TABLE IF NOT EXISTS {prefix}postrider_audit (
  id BIGINT NOT NULL AUTO_INCREMENT,
  at DATETIME(6) NOT NULL,
  who TEXT CHARACTER SET utf8mb4 NOT NULL,
  action VARCHAR(64) CHARACTER SET ascii NOT NULL,
  object TEXT CHARACTER SET utf8mb4 NOT NULL,
  reason TEXT CHARACTER SET utf8mb4 NOT NULL,
  detail TEXT CHARACTER SET utf8mb4 NOT NULL DEFAULT '',
  PRIMARY KEY (id)
) ENGINE = InnoDB;

DELIMITER //
CREATE OR REPLACE TRIGGER {prefix}postrider_audit_before_update
BEFORE UPDATE ON {prefix}postrider_audit
FOR EACH ROW
BEGIN
  SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644,
    MESSAGE_TEXT = 'the audit is not changed: it only grows';
END
//
DELIMITER ;

-- The compact shape: one row per event with the time at which it left. As a view of one table it
-- takes INSERT (event_type, payload) as well. Bytes stand in outbox_events.payload_bytes.
CREATE OR REPLACE VIEW {prefix}outbox (id, event_type, payload, created_at, sent_at) AS
SELECT seq, type, payload, created_at, routed_at
FROM {prefix}outbox_events;
