-- Schedules: registered by relays, run by whichever relay is first, paused by people.

-- name: schedules_register
-- Makes a definition known: $2 name, $3 expression, $4 zone, $5 the event's type, $6 and $7 what
-- becomes of missed slots, $8 its hash. A new one, and one whose times are others than before, is
-- decided until now. $9: one that is known stays as it is. Primary key.
INSERT INTO {schema}{prefix}outbox_schedules AS s (
  name, cron, time_zone, type, missed, most_missed, definition_hash, decided_until, created_at)
SELECT $2::text, $3::text, $4::text, $5::text, $6::text, $7::integer, $8::text, c.now, c.now
FROM (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now) AS c
ON CONFLICT (name) DO UPDATE
SET cron = EXCLUDED.cron,
  time_zone = EXCLUDED.time_zone,
  type = EXCLUDED.type,
  missed = EXCLUDED.missed,
  most_missed = EXCLUDED.most_missed,
  definition_hash = EXCLUDED.definition_hash,
  decided_until = CASE
    WHEN s.cron = EXCLUDED.cron AND s.time_zone = EXCLUDED.time_zone THEN s.decided_until
    ELSE EXCLUDED.decided_until
  END
WHERE s.definition_hash <> EXCLUDED.definition_hash
  AND NOT $9::boolean;

-- name: schedules_now
-- The time to judge by. No table.
-- Only here: SQLite reads the clock once for each transaction.
SELECT coalesce($1::timestamptz, clock_timestamp());

-- name: schedules_list
-- All of them. Reads the table once.
SELECT
  s.name, s.cron, s.time_zone, s.type, s.missed, s.most_missed, s.definition_hash, s.decided_until,
  s.last_slot_at, s.last_event_id, s.paused_at, s.paused_by, s.reason, s.created_at
FROM {schema}{prefix}outbox_schedules AS s
ORDER BY s.name;

-- name: schedules_decide
-- Takes the slots up to $4 for the caller, if nobody has since it read $3; others wait here for the
-- row and then find it changed. Primary key.
UPDATE {schema}{prefix}outbox_schedules
SET decided_until = $4::timestamptz
WHERE name = $1::text
  AND definition_hash = $2::text
  AND decided_until = $3::timestamptz
  AND paused_at IS NULL
RETURNING name;

-- name: schedules_insert_slot
-- Nothing is returned for a slot that has run. Primary key.
INSERT INTO {schema}{prefix}outbox_schedule_slots (schedule, slot_at, event_id, fired_at)
VALUES ($2::text, $3::timestamptz, $4::uuid, coalesce($1::timestamptz, clock_timestamp()))
ON CONFLICT (schedule, slot_at) DO NOTHING
RETURNING event_id;

-- name: schedules_trim_slots
-- Keeps the latest $2 slots. Primary key.
DELETE FROM {schema}{prefix}outbox_schedule_slots
WHERE schedule = $1::text
  AND slot_at <= (
    SELECT o.slot_at
    FROM {schema}{prefix}outbox_schedule_slots AS o
    WHERE o.schedule = $1::text
    ORDER BY o.slot_at DESC
    OFFSET $2::bigint
    LIMIT 1);

-- name: schedules_ran
-- Remembers the last run: its event $3 and its slot $4, without one now. Primary key.
UPDATE {schema}{prefix}outbox_schedules
SET last_slot_at = coalesce($4::timestamptz, $1::timestamptz, clock_timestamp()),
  last_event_id = $3::uuid
WHERE name = $2::text
RETURNING last_slot_at;

-- name: schedules_pause
-- Lets it wait; one that waits already stays as it is. Primary key.
UPDATE {schema}{prefix}outbox_schedules
SET paused_at = coalesce($1::timestamptz, clock_timestamp()),
  paused_by = $3::text,
  reason = $4::text
WHERE name = $2::text
  AND paused_at IS NULL
RETURNING name;

-- name: schedules_resume
-- Lets it go on; what passed meanwhile is decided. Primary key.
UPDATE {schema}{prefix}outbox_schedules
SET paused_at = NULL,
  paused_by = NULL,
  reason = '',
  decided_until = coalesce($1::timestamptz, clock_timestamp())
WHERE name = $2::text
  AND paused_at IS NOT NULL
RETURNING name;

-- name: schedules_forget
-- Its slots go with it. Primary key.
DELETE FROM {schema}{prefix}outbox_schedules
WHERE name = $1::text
RETURNING name;
