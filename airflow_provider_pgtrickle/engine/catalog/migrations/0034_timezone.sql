-- The time zone of a declaration.

ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN IF NOT EXISTS timezone text;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.timezone IS
    'The zone by which its query casts times and reads the clock, as pg_timezone_names has it; NULL: UTC.';
