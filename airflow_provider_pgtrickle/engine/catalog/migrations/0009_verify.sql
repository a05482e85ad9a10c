-- Verification: content held against its query, and what was found.

ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN IF NOT EXISTS verify_every text;

COMMENT ON COLUMN pgtrickle.pgt_stream_tables.verify_every IS
    'How often its DAG holds the content against the query, as a duration or a cron expression; NULL: only when somebody asks.';

CREATE TABLE IF NOT EXISTS pgtrickle.pgt_verifications (
    verification_id bigserial PRIMARY KEY,
    pgt_id bigint NOT NULL,
    definition text NOT NULL,
    status text NOT NULL DEFAULT 'UNFINISHED' CHECK (status IN ('UNFINISHED', 'EQUAL', 'DIFFERENT', 'SKIPPED')),
    reason text,
    ranges integer NOT NULL DEFAULT 1,
    wanted integer[] NOT NULL DEFAULT '{}',
    done integer[] NOT NULL DEFAULT '{}',
    rows_compared bigint NOT NULL DEFAULT 0,
    differences bigint NOT NULL DEFAULT 0,
    undecided bigint NOT NULL DEFAULT 0,
    repaired boolean NOT NULL DEFAULT false,
    data_timestamp timestamptz,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz
);

CREATE INDEX IF NOT EXISTS pgt_verifications_table ON pgtrickle.pgt_verifications (pgt_id, verification_id DESC);

COMMENT ON TABLE pgtrickle.pgt_verifications IS
    'Contents held against their queries: by hash ranges of the identity, each proven at some instant.';
COMMENT ON COLUMN pgtrickle.pgt_verifications.definition IS
    'Digest of the query and the storage; a verification of another definition is not gone on with.';
COMMENT ON COLUMN pgtrickle.pgt_verifications.status IS
    'UNFINISHED: it runs, or was stopped, and the next one goes on with what it left.';
COMMENT ON COLUMN pgtrickle.pgt_verifications.reason IS 'Why it was skipped.';
COMMENT ON COLUMN pgtrickle.pgt_verifications.ranges IS 'Into how many hash ranges the rows are parted.';
COMMENT ON COLUMN pgtrickle.pgt_verifications.wanted IS 'The ranges to compare: all, or those of a sample.';
COMMENT ON COLUMN pgtrickle.pgt_verifications.done IS 'The ranges compared so far.';
COMMENT ON COLUMN pgtrickle.pgt_verifications.rows_compared IS 'Stored rows in the ranges done.';
COMMENT ON COLUMN pgtrickle.pgt_verifications.differences IS
    'Rows that are missing or unexpected, hidden columns that are wrong, and row ids that are.';
COMMENT ON COLUMN pgtrickle.pgt_verifications.undecided IS
    'Rows that differ only in what the query leaves open: 1.0 and 1.00, the order of ties, last digits of floats.';
COMMENT ON COLUMN pgtrickle.pgt_verifications.repaired IS 'Whether the table was computed anew because of it.';
COMMENT ON COLUMN pgtrickle.pgt_verifications.data_timestamp IS 'Of the content, when its last range was compared.';

CREATE TABLE IF NOT EXISTS pgtrickle.pgt_verification_rows (
    verification_id bigint NOT NULL REFERENCES pgtrickle.pgt_verifications ON DELETE CASCADE,
    compared text NOT NULL CHECK (compared IN ('content', 'state', 'row id')),
    side text NOT NULL CHECK (side IN ('missing', 'unexpected')),
    times bigint NOT NULL DEFAULT 1,
    stored jsonb NOT NULL
);

CREATE INDEX IF NOT EXISTS pgt_verification_rows_of ON pgtrickle.pgt_verification_rows (verification_id);

COMMENT ON TABLE pgtrickle.pgt_verification_rows IS 'The first hundred rows that a verification found wrong: they are data.';
COMMENT ON COLUMN pgtrickle.pgt_verification_rows.compared IS
    'content: what readers see; state: hidden columns; row id: the hash by which refreshes find a row.';
COMMENT ON COLUMN pgtrickle.pgt_verification_rows.side IS 'missing: the query has it; unexpected: the table has it.';
COMMENT ON COLUMN pgtrickle.pgt_verification_rows.stored IS 'The row, its values as text.';
