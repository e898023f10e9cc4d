-- The inbox: which messages a consumer has processed, so that none has its effect twice.
--
-- Locks: none that anybody could wait for, as it only creates objects.
-- Consumers need INSERT and SELECT on it.
CREATE TABLE {schema}{prefix}inbox_receipts (
  consumer text NOT NULL,
  source text NOT NULL,
  message_id text NOT NULL,
  content_hash bytea NOT NULL,
  received_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  CONSTRAINT {prefix}inbox_receipts_pkey PRIMARY KEY (consumer, source, message_id),
  CONSTRAINT consumer_has_1_to_255_bytes CHECK (octet_length(consumer) BETWEEN 1 AND 255),
  CONSTRAINT source_has_1_to_255_bytes CHECK (octet_length(source) BETWEEN 1 AND 255),
  CONSTRAINT message_id_has_1_to_255_bytes CHECK (octet_length(message_id) BETWEEN 1 AND 255),
  CONSTRAINT content_hash_has_32_bytes CHECK (octet_length(content_hash) = 32)
);

-- For the purge, at the price that stands at outbox_keys_age_idx.
CREATE INDEX {prefix}inbox_receipts_age_idx
  ON {schema}{prefix}inbox_receipts (received_at);

-- A message that was acknowledged must not lose its effect in a crash.
CREATE FUNCTION {schema}{prefix}inbox_receipts_before_insert()
RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF pg_catalog.current_setting('synchronous_commit') = 'off' THEN
    PERFORM pg_catalog.set_config('synchronous_commit', 'local', true);
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER {prefix}inbox_receipts_before_insert
  BEFORE INSERT ON {schema}{prefix}inbox_receipts
  FOR EACH ROW
  EXECUTE FUNCTION {schema}{prefix}inbox_receipts_before_insert();
