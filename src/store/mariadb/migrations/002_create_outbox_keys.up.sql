-- Idempotency keys: which event a request of a client wrote, so that its repetition writes none.
--
-- Locks: none that anybody could wait for, as it only creates objects.
-- Writers that use keys need INSERT and SELECT on it.
--
-- No foreign key: a key lives for its own retention, also when its event is gone.
CREATE TABLE IF NOT EXISTS {prefix}outbox_keys (
  scope VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `key` VARCHAR(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  event_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  content_hash BINARY(32) NOT NULL,
  created_at DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6)),
  PRIMARY KEY (scope, `key`),
  KEY {prefix}outbox_keys_age_idx (created_at),
  CONSTRAINT scope_has_1_to_255_bytes CHECK (octet_length(scope) BETWEEN 1 AND 255),
  CONSTRAINT key_has_1_to_255_bytes CHECK (octet_length(`key`) BETWEEN 1 AND 255)
) ENGINE = InnoDB;
