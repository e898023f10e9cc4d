-- The session and its transactions.

-- name: session_open
-- Which server this is and where our tables are looked for. The name of the log file holds the
-- timeline that is written now; the control file holds it only after the next checkpoint. No table.
-- Only here: SQLite sets this on the connection, not by SQL.
SELECT
  (SELECT system_identifier FROM pg_control_system()) AS system_identifier,
  CASE
    WHEN pg_is_in_recovery() THEN 0
    ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
  END AS timeline,
  pg_is_in_recovery() AS in_recovery,
  current_setting('server_encoding') AS encoding,
  current_schema()::text AS schema;

-- name: session_tune
-- For a relay: plans that keep their form whatever the statistics of a young table say; leases and
-- tokens that no crash takes back; no transaction of a relay that hangs stays open for long; and a
-- server that notices when nobody waits for its answer any more. No table.
-- Only here: SQLite sets this on the connection, not by SQL.
SELECT
  set_config('plan_cache_mode', 'force_generic_plan', false),
  set_config('enable_seqscan', 'off', false),
  set_config('jit', 'off', false),
  set_config('idle_in_transaction_session_timeout', '30s', false),
  set_config(
    'synchronous_commit',
    CASE current_setting('synchronous_commit')
      WHEN 'off' THEN 'local'
      ELSE current_setting('synchronous_commit')
    END,
    false),
  (
    SELECT set_config(s.name, '2s', false)
    FROM pg_settings AS s
    WHERE s.name = 'client_connection_check_interval'
  );

-- name: session_lock
-- Takes the advisory lock $2 for the rest of the session, if it is free and if the session is our
-- own: a pooler stands between us and the server when $1, the process that the client was told of,
-- is not the one that runs this. No table.
-- Only here: SQLite has no sessions on a server.
SELECT
  CASE
    WHEN pg_backend_pid() = $1::integer THEN pg_try_advisory_lock(1349743990, $2::integer)
    ELSE false
  END AS locked;

-- name: session_limits
-- How long this transaction waits for a lock and for a statement, in milliseconds. No table.
-- Only here: SQLite sets this on the connection, not by SQL.
SELECT
  set_config('lock_timeout', $1::text, true),
  set_config('statement_timeout', $2::text, true);

-- name: session_next_xid
-- The next xid that will be given out, as its distance from xid 3. A transaction of its own, after
-- the snapshot that it belongs to: see events_claim. No table.
-- Only here: SQLite sets this on the connection, not by SQL.
SELECT age('3'::xid);

-- name: session_begin
-- One snapshot per statement, whatever the role's default is.
-- Only here: SQLite sets this on the connection, not by SQL.
BEGIN ISOLATION LEVEL READ COMMITTED;

-- name: session_commit
-- The end of a transaction.
-- Only here: SQLite sets this on the connection, not by SQL.
COMMIT;

-- name: session_rollback
-- The end of one that failed.
-- Only here: SQLite sets this on the connection, not by SQL.
ROLLBACK;
