-- What `postrider doctor` asks. Nothing here takes a lock or writes, and all but doctor_deep cost the
-- same on every database.

-- name: doctor_server
-- Settings of the server as this session has them, and who asks. No table.
-- Only here: a file has no server.
SELECT
  current_setting('server_version') AS version,
  current_setting('fsync') AS fsync,
  current_setting('full_page_writes') AS full_page_writes,
  current_setting('synchronous_commit') AS synchronous_commit,
  current_setting('default_transaction_read_only') AS read_only,
  current_setting('session_replication_role') AS replication_role,
  current_setting('autovacuum') AS autovacuum,
  current_setting('max_prepared_transactions') AS max_prepared_transactions,
  (SELECT s.setting::bigint FROM pg_settings AS s WHERE s.name = 'statement_timeout')
    AS statement_timeout_ms,
  (
    SELECT s.setting::bigint
    FROM pg_settings AS s
    WHERE s.name = 'max_connections')
    - current_setting('superuser_reserved_connections')::bigint AS connections,
  (SELECT sum(d.numbackends)::bigint FROM pg_stat_database AS d) AS connected,
  pg_is_in_recovery() AS in_recovery,
  current_user::text AS role,
  pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS sees_everybody,
  pg_backend_pid() AS pid;

-- name: doctor_clock
-- The server's time and nothing else, so that it is asked for as fast as may be. No table.
-- Only here: SQLite reads the clock of our own process.
SELECT clock_timestamp();

-- name: doctor_pid
-- Which server process answers. No table.
-- Only here: a file has no server.
SELECT pg_backend_pid();

-- name: doctor_commits
-- Settings of roles and of this database that switch synchronous_commit off for somebody who may
-- write events. The catalog.
-- Only here: in SQLite each connection has its own setting.
SELECT coalesce(r.rolname::text, '') AS role
FROM pg_db_role_setting AS s
  LEFT JOIN pg_roles AS r ON r.oid = s.setrole
WHERE s.setdatabase IN (0, (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()))
  AND 'synchronous_commit=off' = ANY (s.setconfig)
  AND (
    s.setrole = 0
    OR has_table_privilege(s.setrole, '{schema}{prefix}outbox_events', 'INSERT'))
ORDER BY role;

-- name: doctor_prepared
-- Prepared transactions of this database: their age, how many of our locks on aggregates each
-- holds, and how many sessions wait for one of these. A prepared transaction has no process; its
-- locks are found by the one that it holds on its own xid. The lock's class is that of
-- outbox_lock_aggregate. Views of the server.
-- Only here: SQLite has no prepared transactions.
SELECT
  p.gid,
  (EXTRACT(EPOCH FROM clock_timestamp() - p.prepared) * 1000)::bigint AS age_ms,
  p.owner::text AS owner,
  count(l.objid) AS aggregates,
  count(w.pid) AS waiting
FROM pg_prepared_xacts AS p
  LEFT JOIN pg_locks AS x ON x.locktype = 'transactionid'
    AND x.transactionid = p.transaction
    AND x.granted
  LEFT JOIN pg_locks AS l ON l.virtualtransaction = x.virtualtransaction
    AND l.pid IS NULL
    AND l.locktype = 'advisory'
    AND l.classid = 1349743988
    AND l.objsubid = 2
    AND l.granted
  LEFT JOIN pg_locks AS w ON w.locktype = 'advisory'
    AND w.classid = l.classid
    AND w.objid = l.objid
    AND w.objsubid = l.objsubid
    AND w.database = l.database
    AND NOT w.granted
WHERE p.database = current_database()
GROUP BY p.gid, p.prepared, p.owner
ORDER BY p.prepared, p.gid;

-- name: doctor_oldest_transaction
-- The session of this database whose transaction is open for the longest. Without pg_read_all_stats
-- a role sees its own. Views of the server.
-- Only here: SQLite does not know its readers.
SELECT
  a.pid,
  coalesce(a.usename::text, '') AS role,
  coalesce(a.application_name, '') AS application,
  coalesce(a.state, '') AS state,
  (EXTRACT(EPOCH FROM clock_timestamp() - a.xact_start) * 1000)::bigint AS age_ms
FROM pg_stat_activity AS a
WHERE a.datname = current_database()
  AND a.backend_type = 'client backend'
  AND a.xact_start IS NOT NULL
  AND a.pid <> pg_backend_pid()
ORDER BY a.xact_start, a.pid
LIMIT 1;

-- name: doctor_sequence
-- How numbers are handed out. The catalog.
-- Only here: SQLite has no sequences.
SELECT s.seqcache, s.seqincrement, s.seqcycle
FROM pg_sequence AS s
WHERE s.seqrelid = to_regclass('{schema}{prefix}outbox_events_seq');

-- name: doctor_tables
-- Our tables as they are. The catalog.
-- Only here: SQLite has no such properties.
SELECT
  n.name,
  c.oid IS NOT NULL AS found,
  coalesce(c.relpersistence = 'u', false) AS unlogged,
  coalesce(c.relrowsecurity, false) AS row_security,
  coalesce('autovacuum_enabled=false' = ANY (c.reloptions), false) AS without_autovacuum
FROM unnest(ARRAY['outbox_events', 'outbox_deliveries', 'outbox_partitions', 'outbox_routes',
    'outbox_keys', 'outbox_job_failures', 'outbox_workers', 'outbox_queues', 'outbox_schedules',
    'outbox_schedule_slots', 'inbox_receipts', 'postrider_audit', 'postrider_schema']) AS n (name)
  LEFT JOIN pg_class AS c ON c.oid = to_regclass('{schema}{prefix}' || n.name)
ORDER BY n.name;

-- name: doctor_triggers
-- Our triggers that are missing, or that do not fire: enabled is O as the migration leaves it, or A
-- (always). The catalog.
SELECT n.trigger, coalesce(t.tgenabled::text, '') AS enabled
FROM (
    VALUES
      ('outbox_events', 'outbox_events_before_insert'),
      ('outbox_events', 'outbox_events_are_immutable'),
      ('outbox_events', 'outbox_events_are_routed_once'),
      ('outbox_deliveries', 'outbox_deliveries_final_stays_final'),
      ('outbox_partitions', 'outbox_partitions_token_ascends'),
      ('outbox_workers', 'outbox_workers_end_once'),
      ('outbox_deliveries', 'outbox_jobs_tell_of_new'),
      ('outbox_deliveries', 'outbox_jobs_tell_of_due_again'),
      ('outbox_queues', 'outbox_queues_tell_of_resumed'),
      ('outbox_queues', 'outbox_queues_tell_of_forgotten'),
      ('postrider_audit', 'postrider_audit_is_not_changed'),
      ('inbox_receipts', 'inbox_receipts_before_insert')) AS n (owner, trigger)
  LEFT JOIN pg_trigger AS t ON t.tgrelid = to_regclass('{schema}{prefix}' || n.owner)
    AND t.tgname = '{prefix}' || n.trigger
WHERE t.tgenabled IS NULL
  OR t.tgenabled NOT IN ('O', 'A')
ORDER BY n.trigger;

-- name: doctor_indexes
-- Indexes of ours that a failed CREATE INDEX CONCURRENTLY or REINDEX has left unusable. The catalog.
-- Only here: SQLite has no such state.
SELECT c.relname::text AS name
FROM pg_index AS i
  INNER JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE i.indrelid IN (
    to_regclass('{schema}{prefix}outbox_events'),
    to_regclass('{schema}{prefix}outbox_deliveries'),
    to_regclass('{schema}{prefix}outbox_partitions'))
  AND NOT i.indisvalid
ORDER BY name;

-- name: doctor_rights
-- Of what a purpose ($1: relay, worker, writer, reader) needs, what the role lacks; with $2 also of
-- what a relay needs for its schedules. The catalog.
-- Only here: SQLite has no roles.
SELECT n.relation, n.right
FROM (
    VALUES
      ('relay', 'outbox_events', 'SELECT'),
      ('relay', 'outbox_events', 'UPDATE'),
      ('relay', 'outbox_events', 'DELETE'),
      ('relay', 'outbox_deliveries', 'SELECT'),
      ('relay', 'outbox_deliveries', 'INSERT'),
      ('relay', 'outbox_deliveries', 'UPDATE'),
      ('relay', 'outbox_deliveries', 'DELETE'),
      ('relay', 'outbox_partitions', 'SELECT'),
      ('relay', 'outbox_partitions', 'UPDATE'),
      ('relay', 'outbox_routes', 'SELECT'),
      ('relay', 'outbox_routes', 'INSERT'),
      ('relay', 'outbox_keys', 'SELECT'),
      ('relay', 'outbox_keys', 'UPDATE'),
      ('relay', 'outbox_keys', 'DELETE'),
      ('relay', 'inbox_receipts', 'SELECT'),
      ('relay', 'inbox_receipts', 'UPDATE'),
      ('relay', 'inbox_receipts', 'DELETE'),
      ('relay', 'outbox_job_failures', 'SELECT'),
      ('relay', 'outbox_job_failures', 'INSERT'),
      ('relay', 'outbox_job_failures', 'DELETE'),
      ('relay', 'outbox_workers', 'SELECT'),
      ('relay', 'outbox_workers', 'UPDATE'),
      ('relay', 'outbox_workers', 'DELETE'),
      ('relay', 'outbox_queues', 'SELECT'),
      ('relay', 'outbox_queues', 'UPDATE'),
      ('relay', 'postrider_schema', 'SELECT'),
      ('relay', 'postrider_audit', 'INSERT'),
      ('worker', 'outbox_events', 'SELECT'),
      ('worker', 'outbox_deliveries', 'SELECT'),
      ('worker', 'outbox_deliveries', 'UPDATE'),
      ('worker', 'outbox_job_failures', 'SELECT'),
      ('worker', 'outbox_job_failures', 'INSERT'),
      ('worker', 'outbox_job_failures', 'DELETE'),
      ('worker', 'outbox_partitions', 'SELECT'),
      ('worker', 'outbox_workers', 'SELECT'),
      ('worker', 'outbox_workers', 'INSERT'),
      ('worker', 'outbox_workers', 'UPDATE'),
      ('worker', 'outbox_queues', 'SELECT'),
      ('worker', 'outbox_queues', 'UPDATE'),
      ('worker', 'postrider_schema', 'SELECT'),
      ('schedules', 'outbox_events', 'INSERT'),
      ('schedules', 'outbox_schedules', 'SELECT'),
      ('schedules', 'outbox_schedules', 'INSERT'),
      ('schedules', 'outbox_schedules', 'UPDATE'),
      ('schedules', 'outbox_schedule_slots', 'SELECT'),
      ('schedules', 'outbox_schedule_slots', 'INSERT'),
      ('schedules', 'outbox_schedule_slots', 'DELETE'),
      ('writer', 'outbox_events', 'INSERT'),
      ('reader', 'outbox_events', 'SELECT'),
      ('reader', 'outbox_deliveries', 'SELECT'),
      ('reader', 'outbox_partitions', 'SELECT'),
      ('reader', 'outbox_routes', 'SELECT'),
      ('reader', 'outbox_job_failures', 'SELECT'),
      ('reader', 'outbox_workers', 'SELECT'),
      ('reader', 'outbox_queues', 'SELECT'),
      ('reader', 'outbox_schedules', 'SELECT'),
      ('reader', 'postrider_schema', 'SELECT')) AS n (purpose, relation, "right")
WHERE (n.purpose = $1::text OR (n.purpose = 'schedules' AND $2::boolean))
  AND to_regclass('{schema}{prefix}' || n.relation) IS NOT NULL
  AND NOT has_table_privilege(to_regclass('{schema}{prefix}' || n.relation), n.right)
UNION ALL
SELECT 'outbox_events_seq', n.right
FROM (VALUES ('relay', 'SELECT'), ('schedules', 'USAGE'), ('writer', 'USAGE')) AS n (purpose, "right")
WHERE (n.purpose = $1::text OR (n.purpose = 'schedules' AND $2::boolean))
  AND to_regclass('{schema}{prefix}outbox_events_seq') IS NOT NULL
  AND NOT has_sequence_privilege(to_regclass('{schema}{prefix}outbox_events_seq'), n.right)
ORDER BY 1, 2;

-- name: doctor_marks
-- What the stored marks, the rows and the sequence say of each other: which servers the marks come
-- from, the furthest position, the highest number, the last one given out (null when the role may
-- not see it), and whether the newest xid of a row is one that this server has not reached. Primary keys and outbox_events_xid_idx.
-- Only here: SQLite has neither servers nor xids.
SELECT
  (
    SELECT coalesce(string_agg(DISTINCT split_part(p.server_identity, '/', 1), ','), '')
    FROM {schema}{prefix}outbox_partitions AS p) AS servers,
  coalesce((SELECT max(p.position) FROM {schema}{prefix}outbox_partitions AS p), 0) AS position,
  coalesce((SELECT max(e.seq) FROM {schema}{prefix}outbox_events AS e), 0) AS highest,
  CASE
    WHEN has_sequence_privilege(to_regclass('{schema}{prefix}outbox_events_seq'), 'SELECT, USAGE')
      THEN coalesce(pg_sequence_last_value(to_regclass('{schema}{prefix}outbox_events_seq')), 0)
  END AS given_out,
  coalesce(
    (
      SELECT e.xid >= pg_snapshot_xmax(pg_current_snapshot())
      FROM {schema}{prefix}outbox_events AS e
      ORDER BY e.xid DESC
      LIMIT 1),
    false) AS xid_ahead;

-- name: doctor_deep
-- Rows that contradict each other: held ones of events that are routed, and others of events that
-- are not. Reads the table of deliveries once.
SELECT
  count(*) FILTER (WHERE d.status = 'held' AND e.routed_at IS NOT NULL) AS held_and_routed,
  count(*) FILTER (WHERE d.status <> 'held' AND e.routed_at IS NULL) AS open_and_unrouted
FROM {schema}{prefix}outbox_deliveries AS d
  INNER JOIN {schema}{prefix}outbox_events AS e ON e.seq = d.event_seq;
