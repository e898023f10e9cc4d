-- What `postrider doctor` asks. Nothing here takes a lock or writes, and all but doctor_deep cost the
-- same on every database.

-- name: doctor_server
-- Settings of the server. No table.
-- Only here: a file has no server.
SELECT
  version(),
  @@innodb_flush_log_at_trx_commit,
  @@log_bin,
  @@sync_binlog,
  @@read_only,
  @@max_allowed_packet,
  @@max_connections,
  @@wait_timeout,
  coalesce((
    SELECT g.variable_value
    FROM information_schema.global_status AS g
    WHERE g.variable_name = 'THREADS_CONNECTED'), 0),
  coalesce((
    SELECT g.variable_value
    FROM information_schema.global_status AS g
    WHERE g.variable_name = 'WSREP_CLUSTER_SIZE'), 0);

-- name: doctor_triggers
-- Our triggers that are not there. The server's own table of triggers.
SELECT n.name
FROM (
  SELECT '{prefix}outbox_events_before_insert' AS name
  UNION ALL SELECT '{prefix}outbox_events_before_update'
  UNION ALL SELECT '{prefix}outbox_deliveries_before_insert'
  UNION ALL SELECT '{prefix}outbox_deliveries_before_update'
  UNION ALL SELECT '{prefix}outbox_partitions_before_update'
  UNION ALL SELECT '{prefix}postrider_audit_before_update'
  UNION ALL SELECT '{prefix}outbox_workers_before_update') AS n
WHERE NOT EXISTS (
  SELECT 1
  FROM information_schema.triggers AS t
  WHERE t.trigger_schema = database()
    AND t.trigger_name = n.name)
ORDER BY n.name;

-- name: doctor_deep
-- Rows that contradict each other: held ones of events that are routed, others of events that are
-- not, and those whose event is gone. Reads the table of deliveries once.
SELECT
  coalesce(sum(d.status = 'held' AND e.routed_at IS NOT NULL), 0),
  coalesce(sum(d.status <> 'held' AND e.seq IS NOT NULL AND e.routed_at IS NULL), 0),
  coalesce(sum(e.seq IS NULL), 0)
FROM {prefix}outbox_deliveries AS d
  LEFT JOIN {prefix}outbox_events AS e ON e.seq = d.event_seq;
