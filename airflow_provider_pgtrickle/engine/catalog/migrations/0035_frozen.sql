-- Rows of sources that don't change any more.

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN IF NOT EXISTS frozen_before text;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.frozen_before IS
    'Rows of its sources that do not change any more, by a column and a bound; their changes are refused.';

CREATE TABLE IF NOT EXISTS pgtrickle.pgt_frozen (
    pgt_id bigint NOT NULL REFERENCES pgtrickle.pgt_stream_tables ON DELETE CASCADE,
    declared text NOT NULL,
    source_relid oid NOT NULL,
    attnum smallint NOT NULL,
    column_type oid NOT NULL,
    base_type oid NOT NULL,
    bound text NOT NULL,
    PRIMARY KEY (pgt_id, declared)
);

CREATE INDEX IF NOT EXISTS pgt_frozen_source ON pgtrickle.pgt_frozen (source_relid);

COMMENT ON TABLE pgtrickle.pgt_frozen IS 'The columns that frozen_before names, as they were found.';
COMMENT ON COLUMN pgtrickle.pgt_frozen.declared IS 'The column as it was declared.';
COMMENT ON COLUMN pgtrickle.pgt_frozen.attnum IS 'The column by its number, which a new name leaves as it is.';
COMMENT ON COLUMN pgtrickle.pgt_frozen.column_type IS 'The type that the column had.';
COMMENT ON COLUMN pgtrickle.pgt_frozen.base_type IS 'The type in which it is compared; of a domain the one that it is of.';
COMMENT ON COLUMN pgtrickle.pgt_frozen.bound IS 'SQL of the value below which rows are frozen.';
