-- Ways to compute that failed because memory was short.

ALTER TABLE pgtrickle.pgt_refresh_history
    ADD COLUMN IF NOT EXISTS lacked jsonb,
    ADD COLUMN IF NOT EXISTS memory text;

COMMENT ON COLUMN pgtrickle.pgt_refresh_history.lacked IS
    'The ways for which memory or room for temporary files was short, each with the size: changed rows, or for FULL all rows of the sources.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.memory IS
    'The settings under which memory was short. While they are the same, these ways aren''t chosen for this size or above.';

CREATE INDEX IF NOT EXISTS pgt_refresh_history_lacked ON pgtrickle.pgt_refresh_history (pgt_id) WHERE lacked IS NOT NULL;
