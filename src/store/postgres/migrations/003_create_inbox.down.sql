-- Forgets what was processed: a message that is delivered again has its effect again.
--
-- Locks: the table exclusively, for a moment; it waits for open transactions of consumers.
DROP TABLE {schema}{prefix}inbox_receipts;

DROP FUNCTION {schema}{prefix}inbox_receipts_before_insert();
