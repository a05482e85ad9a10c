-- What a content depends on besides its sources, and how old it may be.

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN IF NOT EXISTS steady boolean NOT NULL DEFAULT true,
    ADD COLUMN IF NOT EXISTS effective_schedule interval;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.steady IS
    'Whether the same sources always give the same content. What asks the clock or chance is computed at each refresh.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.effective_schedule IS
    'How old its schedule, or that of its readers, lets it become: the longest gap of a cron expression.';

UPDATE pgtrickle.pgt_stream_tables SET steady = false WHERE refusal ~ 'clock or the session|volatile function';
