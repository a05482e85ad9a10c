-- Changes of frozen rows are refused, or ignored.

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN IF NOT EXISTS frozen_breach text NOT NULL DEFAULT 'refuse'
        CHECK (frozen_breach IN ('refuse', 'ignore')),
    ADD COLUMN IF NOT EXISTS frozen_rows text;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.frozen_before IS
    'Rows of its sources that do not change any more, by a column and a bound.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.frozen_breach IS
    'What becomes of a change of such a row: it is refused to the writer, or ignored by the stream table.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.frozen_rows IS
    'Of a copy that keeps the frozen rows of a source: SQL of which rows are frozen, over its columns and now().';
