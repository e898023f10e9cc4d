-- The inbox: which messages a consumer has processed, so that none has its effect twice.
--
-- Locks: none that anybody could wait for, as it only creates objects.
-- Consumers need INSERT and SELECT on it.
CREATE TABLE IF NOT EXISTS {prefix}inbox_receipts (
  consumer VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  source VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  message_id VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  content_hash BINARY(32) NOT NULL,
  received_at DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6)),
  PRIMARY KEY (consumer, source, message_id),
  KEY {prefix}inbox_receipts_age_idx (received_at),
  CONSTRAINT consumer_has_1_to_255_bytes CHECK (octet_length(consumer) BETWEEN 1 AND 255),
  CONSTRAINT source_has_1_to_255_bytes CHECK (octet_length(source) BETWEEN 1 AND 255),
  CONSTRAINT message_id_has_1_to_255_bytes CHECK (octet_length(message_id) BETWEEN 1 AND 255)
) ENGINE = InnoDB;
