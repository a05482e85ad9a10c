-- Whether the clock has moved rows of a stream table, before anything is refreshed.

ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN IF NOT EXISTS clock_probe text;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.clock_probe IS
    'SQL of whether a row compares otherwise with the clock at "__pgt_clock".new than at "__pgt_clock".old; NULL: no row does.';

-- Comparisons with the clock have a difference now.
UPDATE pgtrickle.pgt_stream_tables SET needs_reinit = true, reinit_reason = 'schema_changed'
 WHERE refusal ~ 'clock or the session' AND refusal ~ 'now|transaction_timestamp|statement_timestamp|current_timestamp';
