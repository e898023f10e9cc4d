-- The clock that judges leases, due times and retention.

-- name: clock_now
-- One reading for all statements of a transaction: SQLite's 'now' stands still only within one
-- statement. The time given wins, for tests and the simulator. No table.
-- Only here: PostgreSQL reads the clock inside each statement.
SELECT coalesce(:now, strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z');
