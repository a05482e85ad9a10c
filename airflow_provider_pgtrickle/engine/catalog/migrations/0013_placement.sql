-- Where changes are computed, and what each way has cost.

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN IF NOT EXISTS placement text CHECK (placement IN ('spark', 'auto', 'database'));

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.placement IS
    'Where its changes are computed: on spark, in the database, or auto: where that is cheaper; NULL: as the setting says.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.server_row_ids IS
    'Its row ids are computed by the server; those of tables that releases before 0013 made are XXH64.';
