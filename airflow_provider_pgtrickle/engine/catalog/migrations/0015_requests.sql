-- What SQL asks for, and the explanation that was written when a table was declared.

ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN IF NOT EXISTS explanation text;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.explanation IS
    'How it is maintained, as it was explained when its query was declared.';

CREATE TABLE IF NOT EXISTS pgtrickle.pgt_requests (
    request_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('DECLARE', 'REFRESH')),
    pgt_schema text NOT NULL,
    pgt_name text NOT NULL,
    query text CHECK ((query IS NOT NULL) = (kind = 'DECLARE')),
    options jsonb NOT NULL DEFAULT '{}',
    search_path text,
    force_full boolean NOT NULL DEFAULT false,
    initialize boolean NOT NULL DEFAULT true,
    requested_by text NOT NULL DEFAULT current_user,
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz,
    status text NOT NULL DEFAULT 'PENDING' CHECK (status IN ('PENDING', 'RUNNING', 'DONE', 'FAILED')),
    begun integer NOT NULL DEFAULT 0,
    begun_at timestamptz,
    answered_at timestamptz,
    answer jsonb,
    error text,
    CHECK ((status IN ('DONE', 'FAILED')) = (answered_at IS NOT NULL))
);

CREATE INDEX IF NOT EXISTS pgt_requests_unanswered
    ON pgtrickle.pgt_requests (request_id) WHERE answered_at IS NULL;

COMMENT ON TABLE pgtrickle.pgt_requests IS
    'What was asked for in SQL: carried out by `pgtrickle serve-requests` or a DAG, and answered once.';
COMMENT ON COLUMN pgtrickle.pgt_requests.kind IS 'DECLARE: create or replace; REFRESH.';
COMMENT ON COLUMN pgtrickle.pgt_requests.options IS 'Of a declaration: the options by name, as in Python.';
COMMENT ON COLUMN pgtrickle.pgt_requests.search_path IS 'Along which the names in the query are meant.';
COMMENT ON COLUMN pgtrickle.pgt_requests.force_full IS 'Of a refresh: compute everything anew.';
COMMENT ON COLUMN pgtrickle.pgt_requests.initialize IS 'Of a declaration: fill the table, too.';
COMMENT ON COLUMN pgtrickle.pgt_requests.seen_at IS
    'When a DAG or a server first saw it: a refresh that began later knows what the asking transaction did.';
COMMENT ON COLUMN pgtrickle.pgt_requests.status IS
    'RUNNING whose process has died is begun again; DONE and FAILED are answers.';
COMMENT ON COLUMN pgtrickle.pgt_requests.begun IS 'How often it was begun; after the third time it fails.';
COMMENT ON COLUMN pgtrickle.pgt_requests.answer IS 'What was done: the table, and the refresh''s action and rows.';
COMMENT ON COLUMN pgtrickle.pgt_requests.error IS 'Why it failed, in one sentence, and what to do.';
