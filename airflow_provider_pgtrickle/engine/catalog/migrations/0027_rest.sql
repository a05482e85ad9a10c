-- Units by declaration.

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN IF NOT EXISTS unit text,
    ADD COLUMN IF NOT EXISTS together bigint[] NOT NULL DEFAULT '{}';

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.unit IS
    'The unit by declaration: tables that name the same one are refreshed on one snapshot and in one commit.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.together IS
    'The ids of all that is refreshed with it by declaration, its own included; empty if it stands alone.';

CREATE INDEX IF NOT EXISTS pgt_stream_tables_unit ON pgtrickle.pgt_stream_tables (unit) WHERE unit IS NOT NULL;

-- Append-only sources, declared and checked.

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN IF NOT EXISTS append_only_breach text NOT NULL DEFAULT 'end'
        CHECK (append_only_breach IN ('end', 'refuse')),
    ADD COLUMN IF NOT EXISTS append_only_ended text;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.append_only IS
    'Rows of its sources are only ever inserted, which is checked.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.append_only_breach IS
    'What an UPDATE, DELETE or TRUNCATE of a source does: end the declaration, or be refused.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.append_only_ended IS
    'What ended the declaration append_only, in words; NULL while it holds.';

-- Tiers that follow use.

ALTER TABLE pgtrickle.pgt_stream_tables
    DROP CONSTRAINT IF EXISTS pgt_stream_tables_tier_check,
    ADD CONSTRAINT pgt_stream_tables_tier_check CHECK (tier IN ('hot', 'warm', 'cold', 'frozen', 'auto'));

CREATE TABLE IF NOT EXISTS pgtrickle.pgt_use (
    pgt_id bigint PRIMARY KEY REFERENCES pgtrickle.pgt_stream_tables ON DELETE CASCADE,
    scans bigint NOT NULL,
    read_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE pgtrickle.pgt_use IS 'When somebody last read a stream table in tier auto, but for refreshes.';
COMMENT ON COLUMN pgtrickle.pgt_use.scans IS
    'The scans that PostgreSQL had counted when it was last looked at; those of a refresh are in it.';
COMMENT ON COLUMN pgtrickle.pgt_use.read_at IS 'When a read was last noticed; at first, when it was first looked at.';

-- Counters that survive retention.

CREATE TABLE IF NOT EXISTS pgtrickle.pgt_totals (
    pgt_id bigint PRIMARY KEY REFERENCES pgtrickle.pgt_stream_tables ON DELETE CASCADE,
    completed bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    skipped bigint NOT NULL DEFAULT 0,
    rows_inserted bigint NOT NULL DEFAULT 0,
    rows_updated bigint NOT NULL DEFAULT 0,
    rows_deleted bigint NOT NULL DEFAULT 0,
    duration_ms double precision NOT NULL DEFAULT 0,
    max_duration_ms double precision NOT NULL DEFAULT 0
);

COMMENT ON TABLE pgtrickle.pgt_totals IS
    'What the history said of refreshes that are too old for it; pg_stat_stream_tables adds it to what it still says.';
