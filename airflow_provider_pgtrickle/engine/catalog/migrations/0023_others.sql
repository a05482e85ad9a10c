-- What is asked about one stream table doesn't read the others.

CREATE INDEX IF NOT EXISTS pgt_stream_tables_parts ON pgtrickle.pgt_stream_tables (part_of) WHERE part_of IS NOT NULL;
CREATE INDEX IF NOT EXISTS pgt_stream_tables_live ON pgtrickle.pgt_stream_tables (pgt_id) WHERE is_live;
CREATE INDEX IF NOT EXISTS pgt_change_tracking_wal ON pgtrickle.pgt_change_tracking (source_relid) WHERE mode = 'WAL';
