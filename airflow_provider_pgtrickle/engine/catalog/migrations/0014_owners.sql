-- Which file declares a stream table.

CREATE TABLE IF NOT EXISTS pgtrickle.pgt_owners (
    pgt_id bigint PRIMARY KEY REFERENCES pgtrickle.pgt_stream_tables ON DELETE CASCADE,
    bundle text NOT NULL,
    file text NOT NULL,
    graph text NOT NULL,
    declared_at timestamptz NOT NULL DEFAULT now(),
    removed_at timestamptz
);

COMMENT ON TABLE pgtrickle.pgt_owners IS
    'The DAG file that declares a stream table. What people declare by hand has no row.';
COMMENT ON COLUMN pgtrickle.pgt_owners.bundle IS 'The DAG bundle of the file; empty where it is in none.';
COMMENT ON COLUMN pgtrickle.pgt_owners.file IS 'The file, relative to its bundle.';
COMMENT ON COLUMN pgtrickle.pgt_owners.graph IS 'The StreamTableGraph, or the DAG and task that create it.';
COMMENT ON COLUMN pgtrickle.pgt_owners.declared_at IS 'Since when this file has declared it.';
COMMENT ON COLUMN pgtrickle.pgt_owners.removed_at IS
    'When the plan of its graph found that it declares the table no more; NULL while it does.';
