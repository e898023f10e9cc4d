-- The inbox: which messages a consumer has processed, so that none has its effect twice.
--
-- Locks: creates one new table only; other writers of the file wait for its short transaction.
CREATE TABLE {prefix}inbox_receipts (
  consumer TEXT NOT NULL
    CONSTRAINT consumer_has_1_to_255_bytes CHECK (
      length(CAST(consumer AS BLOB)) BETWEEN 1 AND 255),
  source TEXT NOT NULL
    CONSTRAINT source_has_1_to_255_bytes CHECK (length(CAST(source AS BLOB)) BETWEEN 1 AND 255),
  message_id TEXT NOT NULL
    CONSTRAINT message_id_has_1_to_255_bytes CHECK (
      length(CAST(message_id AS BLOB)) BETWEEN 1 AND 255),
  content_hash BLOB NOT NULL
    CONSTRAINT content_hash_has_32_bytes CHECK (length(content_hash) = 32),
  received_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z')
    CONSTRAINT received_at_is_utc_with_microseconds CHECK (
      received_at GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  PRIMARY KEY (consumer, source, message_id)
) STRICT, WITHOUT ROWID;

-- For the purge, at the price that stands at outbox_keys_age.
CREATE INDEX {prefix}inbox_receipts_age
  ON {prefix}inbox_receipts (received_at);
