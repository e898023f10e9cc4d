-- What is known of an application's transaction when its COMMIT is not answered.

-- name: transactions_ticket
-- The number of this transaction, which it takes if it has none, and the server that gave it: the
-- name of the log file holds the timeline. No table.
-- Only here: only a server can lose the answer to COMMIT.
SELECT
  pg_current_xact_id()::text AS xid,
  (SELECT s.system_identifier FROM pg_control_system() AS s)::text || '/'
    || ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer AS server;

-- name: transactions_status
-- What became of transaction $1 of server $2; null where this one cannot know. No table.
-- Only here: only a server can lose the answer to COMMIT.
SELECT
  CASE WHEN n.server = $2::text THEN
    pg_xact_status($1::text::xid8)
  END AS status
FROM (
  SELECT
    CASE WHEN NOT pg_is_in_recovery() THEN
      (SELECT s.system_identifier FROM pg_control_system() AS s)::text || '/'
        || ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
    END AS server) AS n;
