-- Forgets what was processed: a message that is delivered again has its effect again.
DROP TABLE {prefix}inbox_receipts;
