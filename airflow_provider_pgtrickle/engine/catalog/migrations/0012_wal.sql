-- Capture from the WAL: how each source is captured, and how far the log has been read.

ALTER TABLE pgtrickle.pgt_change_tracking
    ADD COLUMN IF NOT EXISTS mode text NOT NULL DEFAULT 'TRIGGER' CHECK (mode IN ('TRIGGER', 'WAL')),
    ADD COLUMN IF NOT EXISTS mode_since timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN IF NOT EXISTS mode_reason text,
    ADD COLUMN IF NOT EXISTS wal_after timestamptz,
    ADD COLUMN IF NOT EXISTS column_types oid[] NOT NULL DEFAULT '{}',
    ADD COLUMN IF NOT EXISTS wal_from pg_lsn,
    ADD COLUMN IF NOT EXISTS wal_until pg_lsn;

COMMENT ON COLUMN pgtrickle.pgt_change_tracking.mode IS
    'TRIGGER: by its triggers; WAL: from the log, only TRUNCATE by a trigger.';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.mode_since IS 'When the present mode began.';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.mode_reason IS 'Why it is not captured in the other mode.';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.wal_after IS
    'After a way back: not before then it goes over to the WAL by itself.';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.column_types IS 'The types of columns, as they are captured.';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.wal_from IS
    'What has committed here or later is taken from the log; before, triggers have captured it.';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.wal_until IS
    'What has committed here or later is captured by triggers again.';

ALTER TABLE pgtrickle.pgt_dependencies DROP CONSTRAINT IF EXISTS pgt_dependencies_cdc_mode_check;
ALTER TABLE pgtrickle.pgt_dependencies ADD CONSTRAINT pgt_dependencies_cdc_mode_check
    CHECK (cdc_mode IN ('TRIGGER', 'WAL', 'NONE'));

CREATE TABLE IF NOT EXISTS pgtrickle.pgt_wal (
    slot_name text PRIMARY KEY,
    publication text NOT NULL,
    position pg_lsn NOT NULL,
    pumped_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE pgtrickle.pgt_wal IS 'The replication slot of this database; no row where no source is captured from the WAL.';
COMMENT ON COLUMN pgtrickle.pgt_wal.position IS
    'The changes of all transactions that committed before are in the change buffers.';
