-- Schedules, and the slots that have run.
--
-- Locks: creates new tables only; other writers of the file wait for its one short transaction.

-- One row per schedule that was ever seen. decided_until is what relays compare before they run a
-- slot: of those that read the same one, the first to change it runs.
CREATE TABLE {prefix}outbox_schedules (
  name TEXT NOT NULL PRIMARY KEY
    CONSTRAINT name_is_not_empty CHECK (name <> ''),
  cron TEXT NOT NULL,
  time_zone TEXT NOT NULL,
  type TEXT NOT NULL,
  missed TEXT NOT NULL
    CONSTRAINT missed_is_known CHECK (missed IN ('skip', 'one', 'all')),
  most_missed INTEGER NOT NULL
    CONSTRAINT most_missed_is_1_to_100 CHECK (most_missed BETWEEN 1 AND 100),
  definition_hash TEXT NOT NULL,
  decided_until TEXT NOT NULL,
  last_slot_at TEXT,
  last_event_id TEXT,
  paused_at TEXT,
  paused_by TEXT,
  reason TEXT NOT NULL DEFAULT '',
  created_at TEXT NOT NULL,
  CONSTRAINT a_run_has_its_event CHECK ((last_slot_at IS NULL) = (last_event_id IS NULL)),
  CONSTRAINT somebody_paused_it CHECK ((paused_at IS NULL) = (paused_by IS NULL))
) STRICT, WITHOUT ROWID;

-- A slot runs once, whatever relays believe.
CREATE TABLE {prefix}outbox_schedule_slots (
  schedule TEXT NOT NULL
    REFERENCES {prefix}outbox_schedules (name) ON DELETE CASCADE,
  slot_at TEXT NOT NULL,
  event_id TEXT NOT NULL,
  fired_at TEXT NOT NULL,
  PRIMARY KEY (schedule, slot_at)
) STRICT, WITHOUT ROWID;
