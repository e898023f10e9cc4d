-- Idempotency keys: which event a request of a client wrote, so that its repetition writes none.
--
-- Locks: creates one new table only; other writers of the file wait for its short transaction.
--
-- No foreign key: a key lives for its own retention, also when its event is gone.
CREATE TABLE {prefix}outbox_keys (
  scope TEXT NOT NULL
    CONSTRAINT scope_has_1_to_255_bytes CHECK (length(CAST(scope AS BLOB)) BETWEEN 1 AND 255),
  key TEXT NOT NULL
    CONSTRAINT key_has_1_to_255_bytes CHECK (length(CAST(key AS BLOB)) BETWEEN 1 AND 255),
  event_id TEXT NOT NULL
    CONSTRAINT event_id_is_a_lower_case_uuid CHECK (
      event_id GLOB '????????-????-????-????-????????????'
      AND replace(event_id, '-', '') NOT GLOB '*[^0-9a-f]*'
      AND length(replace(event_id, '-', '')) = 32),
  content_hash BLOB NOT NULL
    CONSTRAINT content_hash_has_32_bytes CHECK (length(content_hash) = 32),
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z')
    CONSTRAINT created_at_is_utc_with_microseconds CHECK (
      created_at GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

-- For the purge. Measured on 500,000 rows: a look that finds nothing old reads one page and not the
-- whole table; an insert costs a sixth more.
CREATE INDEX {prefix}outbox_keys_age
  ON {prefix}outbox_keys (created_at);
