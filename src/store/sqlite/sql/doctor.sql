-- What `postrider doctor` asks beside pragmas.

-- name: doctor_triggers
-- Our triggers that are not there. The schema's own table.
SELECT n.value
FROM json_each('["outbox_events_seq_ascends", "outbox_events_are_immutable",
  "outbox_events_are_routed_once", "outbox_deliveries_final_stays_final",
  "outbox_partitions_token_ascends", "outbox_workers_end_once",
  "postrider_audit_is_not_changed"]') AS n
WHERE NOT EXISTS (
  SELECT 1
  FROM sqlite_master AS m
  WHERE m.type = 'trigger'
    AND m.name = '{prefix}' || n.value)
ORDER BY n.value;

-- name: doctor_deep
-- Rows that contradict each other: held ones of events that are routed, others of events that are
-- not, and those whose event is gone. Reads the table of deliveries once.
SELECT
  coalesce(sum(d.status = 'held' AND e.routed_at IS NOT NULL), 0),
  coalesce(sum(d.status <> 'held' AND e.seq IS NOT NULL AND e.routed_at IS NULL), 0),
  coalesce(sum(e.seq IS NULL), 0)
FROM {prefix}outbox_deliveries AS d
  LEFT JOIN {prefix}outbox_events AS e ON e.seq = d.event_seq;
