-- The explanation in short, for explain_st(), which now has a second argument; and requests to drop.

ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN IF NOT EXISTS summary text;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.summary IS 'The explanation in short, as it was when its query was declared.';

DROP FUNCTION IF EXISTS pgtrickle.explain_st(text);

ALTER TABLE pgtrickle.pgt_requests
    DROP CONSTRAINT IF EXISTS pgt_requests_kind_check,
    ADD CONSTRAINT pgt_requests_kind_check CHECK (kind IN ('DECLARE', 'REFRESH', 'DROP'));

COMMENT ON COLUMN pgtrickle.pgt_requests.kind IS 'DECLARE: create or replace; REFRESH; DROP.';
COMMENT ON COLUMN pgtrickle.pgt_requests.options IS
    'Of a declaration: the options by name, as in Python. Of a drop: which table is meant, and whether its readers go.';

CREATE TABLE IF NOT EXISTS pgtrickle.pgt_buffer_samples (
    at timestamptz NOT NULL DEFAULT now(),
    buffer text NOT NULL,
    rows bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (at, buffer)
);

COMMENT ON TABLE pgtrickle.pgt_buffer_samples IS
    'How much stood in each change buffer, every ten minutes of the last two days, taken by plan and cleanup.';
COMMENT ON COLUMN pgtrickle.pgt_buffer_samples.rows IS 'As PostgreSQL''s statistics count them, which is nearly right.';
