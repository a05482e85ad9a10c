-- Where changes are computed, and what each way has cost.

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN IF NOT EXISTS placement text CHECK (placement IN ('spark', 'auto', 'database'));

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.placement IS
    'Where its changes are computed: on spark, in the database, or auto: where that is cheaper; NULL: as the setting says.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.server_row_ids IS
    'Its row ids are computed by the server; those of tables that releases before 0013 made are XXH64.';

ALTER TABLE pgtrickle.pgt_refresh_history
    ADD COLUMN IF NOT EXISTS way text,
    ADD COLUMN IF NOT EXISTS candidates jsonb,
    ADD COLUMN IF NOT EXISTS actual_ms double precision,
    ADD COLUMN IF NOT EXISTS source_rows double precision,
    ADD COLUMN IF NOT EXISTS regime text;

COMMENT ON COLUMN pgtrickle.pgt_refresh_history.way IS
    'Who computed it: the database, Spark by one pushed statement, or Spark by a lowered plan.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.candidates IS
    'The ways that were possible, by what each was predicted to take in milliseconds; NULL where there was one.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.actual_ms IS 'What this table''s computation and its writing took.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.source_rows IS 'Estimated rows of its sources, where they were asked for.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.regime IS
    'Digest of the query, the indexes of its sources and the server: what was measured under another one is forgotten.';

-- Most refreshes of most tables find nothing to compute.
CREATE INDEX IF NOT EXISTS pgt_refresh_history_measured
    ON pgtrickle.pgt_refresh_history (pgt_id, refresh_id DESC) WHERE actual_ms IS NOT NULL;

CREATE TABLE IF NOT EXISTS pgtrickle.pgt_calibration (
    name text PRIMARY KEY,
    value double precision NOT NULL,
    measured_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON TABLE pgtrickle.pgt_calibration IS
    'What a row costs on this installation, as `pgtrickle calibrate` measured it: where predictions begin.';

-- Roles that refresh were granted the tables that there were. These are constants, and nobody's data.
GRANT SELECT ON pgtrickle.pgt_calibration TO PUBLIC;
