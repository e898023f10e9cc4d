-- Forgets what was processed: a message that is delivered again has its effect again.
DROP TABLE IF EXISTS {prefix}inbox_receipts;
