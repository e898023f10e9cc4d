-- The clock that judges leases, due times and retention.

-- name: clock_now
-- One reading for all statements of a transaction, taken when its locks are held. The time given
-- wins, for tests and the simulator; then nobody asks. No table.
-- Only here: PostgreSQL reads the clock inside each statement.
SELECT utc_timestamp(6);
