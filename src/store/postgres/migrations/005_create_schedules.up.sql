-- Schedules, and the slots that have run.
--
-- Locks: creates new tables only.
-- Relays with schedules need INSERT on outbox_events, SELECT, INSERT and UPDATE on outbox_schedules, and
-- SELECT, INSERT and DELETE on outbox_schedule_slots.

-- One row per schedule that was ever seen. decided_until is what relays compare before they run a
-- slot: of those that read the same one, the first to change it runs.
CREATE TABLE {schema}{prefix}outbox_schedules (
  name text NOT NULL,
  cron text NOT NULL,
  time_zone text NOT NULL,
  type text NOT NULL,
  missed text NOT NULL,
  most_missed integer NOT NULL,
  definition_hash text NOT NULL,
  decided_until timestamptz NOT NULL,
  last_slot_at timestamptz,
  last_event_id uuid,
  paused_at timestamptz,
  paused_by text,
  reason text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL,
  CONSTRAINT {prefix}outbox_schedules_pkey PRIMARY KEY (name),
  CONSTRAINT name_is_not_empty CHECK (name <> ''),
  CONSTRAINT missed_is_known CHECK (missed IN ('skip', 'one', 'all')),
  CONSTRAINT most_missed_is_1_to_100 CHECK (most_missed BETWEEN 1 AND 100),
  CONSTRAINT a_run_has_its_event CHECK ((last_slot_at IS NULL) = (last_event_id IS NULL)),
  CONSTRAINT somebody_paused_it CHECK ((paused_at IS NULL) = (paused_by IS NULL))
) WITH (fillfactor = 50);

-- A slot runs once, whatever relays believe.
CREATE TABLE {schema}{prefix}outbox_schedule_slots (
  schedule text NOT NULL,
  slot_at timestamptz NOT NULL,
  event_id uuid NOT NULL,
  fired_at timestamptz NOT NULL,
  CONSTRAINT {prefix}outbox_schedule_slots_pkey PRIMARY KEY (schedule, slot_at),
  CONSTRAINT {prefix}outbox_schedule_slots_schedule_fkey FOREIGN KEY (schedule)
    REFERENCES {schema}{prefix}outbox_schedules (name) ON DELETE CASCADE
);
