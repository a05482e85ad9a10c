-- What writers have done to the stream tables that they maintain, and what it costs them.

ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN IF NOT EXISTS rows_written bigint[];

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.rows_written IS
    'Rows inserted, updated and deleted by the server''s counters, as the last plan found them; of IMMEDIATE tables.';

-- Samples: after a crash there are none.
CREATE UNLOGGED TABLE IF NOT EXISTS pgtrickle.pgt_immediate_stats (
    pgt_id bigint NOT NULL,
    source text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    rows integer NOT NULL,
    duration_ms double precision NOT NULL
);

COMMENT ON TABLE pgtrickle.pgt_immediate_stats IS
    'How long one statement in fifty took to maintain an IMMEDIATE table, and how many captured rows it brought.';
