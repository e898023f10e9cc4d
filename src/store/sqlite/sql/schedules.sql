-- Schedules: registered by relays, run by whichever relay is first, paused by people.

-- name: schedules_register
-- Makes a definition known. A new one, and one whose times are others than before, is decided until
-- now. With :only_new one that is known stays as it is. Primary key.
INSERT INTO {prefix}outbox_schedules (
  name, cron, time_zone, type, missed, most_missed, definition_hash, decided_until, created_at)
VALUES (
  :name, :cron, :time_zone, :type, :missed, :most_missed, :definition_hash, :now, :now)
ON CONFLICT (name) DO UPDATE
SET cron = excluded.cron,
  time_zone = excluded.time_zone,
  type = excluded.type,
  missed = excluded.missed,
  most_missed = excluded.most_missed,
  definition_hash = excluded.definition_hash,
  decided_until = CASE
    WHEN cron = excluded.cron AND time_zone = excluded.time_zone THEN decided_until
    ELSE excluded.decided_until
  END
WHERE definition_hash <> excluded.definition_hash
  AND NOT :only_new;

-- name: schedules_list
-- All of them. Reads the table once.
SELECT
  s.name, s.cron, s.time_zone, s.type, s.missed, s.most_missed, s.definition_hash, s.decided_until,
  s.last_slot_at, s.last_event_id, s.paused_at, s.paused_by, s.reason, s.created_at
FROM {prefix}outbox_schedules AS s
ORDER BY s.name;

-- name: schedules_decide
-- Takes the slots up to :decide_until for the caller, if nobody has since it read :decided_until.
-- Primary key.
UPDATE {prefix}outbox_schedules
SET decided_until = :decide_until
WHERE name = :name
  AND definition_hash = :definition_hash
  AND decided_until = :decided_until
  AND paused_at IS NULL;

-- name: schedules_insert_slot
-- Changes nothing for a slot that has run. Primary key.
INSERT INTO {prefix}outbox_schedule_slots (schedule, slot_at, event_id, fired_at)
VALUES (:name, :slot_at, :event_id, :now)
ON CONFLICT (schedule, slot_at) DO NOTHING;

-- name: schedules_trim_slots
-- Keeps the latest :kept slots. Primary key.
DELETE FROM {prefix}outbox_schedule_slots
WHERE schedule = :name
  AND slot_at <= (
    SELECT o.slot_at
    FROM {prefix}outbox_schedule_slots AS o
    WHERE o.schedule = :name
    ORDER BY o.slot_at DESC
    LIMIT 1 OFFSET :kept);

-- name: schedules_ran
-- Remembers the last run. Primary key.
UPDATE {prefix}outbox_schedules
SET last_slot_at = :slot_at,
  last_event_id = :event_id
WHERE name = :name;

-- name: schedules_pause
-- Lets it wait; one that waits already stays as it is. Primary key.
UPDATE {prefix}outbox_schedules
SET paused_at = :now,
  paused_by = :paused_by,
  reason = :reason
WHERE name = :name
  AND paused_at IS NULL;

-- name: schedules_resume
-- Lets it go on; what passed meanwhile is decided. Primary key.
UPDATE {prefix}outbox_schedules
SET paused_at = NULL,
  paused_by = NULL,
  reason = '',
  decided_until = :now
WHERE name = :name
  AND paused_at IS NOT NULL;

-- name: schedules_forget
-- Its slots go with it. Primary key.
DELETE FROM {prefix}outbox_schedules
WHERE name = :name;
