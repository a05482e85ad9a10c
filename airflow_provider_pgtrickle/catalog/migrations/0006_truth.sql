-- Whether a content depends on its sources alone.

ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN IF NOT EXISTS steady boolean NOT NULL DEFAULT true;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.steady IS
    'Whether the same sources always give the same content. What asks the clock or chance is computed at each refresh.';

UPDATE pgtrickle.pgt_stream_tables SET steady = false WHERE refusal ~ 'clock or the session|volatile function';
