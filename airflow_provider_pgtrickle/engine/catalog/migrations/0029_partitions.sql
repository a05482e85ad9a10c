-- Partitions that refreshes make and drop.

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN IF NOT EXISTS partition_every text,
    ADD COLUMN IF NOT EXISTS keep text;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.partition_every IS
    'Which partitions a refresh makes as rows come: a length of time or of a number, or value; NULL: none.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.keep IS
    'How far back its partitions go: older ones are dropped, and their rows are not in the content; NULL: all are.';
