-- What an altered query keeps, and what else is compared with the clock.
--
-- An altered query's content is computed from the stored rows, where it follows from them.

ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN IF NOT EXISTS kept_query text;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.kept_query IS
    'While an altered query waits for its first refresh: the canonical text of the query whose content is stored.';

-- Lists that hold the clock, and ranges that contain it, have a difference now.
UPDATE pgtrickle.pgt_stream_tables SET needs_reinit = true, reinit_reason = 'schema_changed'
 WHERE refusal ~ 'computes with the clock' AND defining_query ~ '(ANY|ALL) \(|@>|<@';
