-- What a declaration meant, so that it is never read otherwise, and whose code it accepted.

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN IF NOT EXISTS search_path text,
    ADD COLUMN IF NOT EXISTS declared_by text DEFAULT current_user,
    ADD COLUMN IF NOT EXISTS foreign_code jsonb;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.search_path IS
    'Of the connection that declared it, by which names in original_query are meant.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.declared_by IS 'The role that declared its query last.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.foreign_code IS
    'Functions and views of others behind the query, as they were accepted: {"oid": digest}.';
