-- Stream tables in parts: hidden ones that keep what another one is computed from, and are refreshed with it.

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN IF NOT EXISTS part_of bigint,
    ADD COLUMN IF NOT EXISTS split_query text;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.is_hidden IS 'Whether it keeps a part of another one.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.part_of IS 'pgt_id of the stream table that it is a part of.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.split_query IS
    'What says the same as defining_query over the parts; NULL where there are none.';
