-- A difference that Spark computes is given up, too, and what it took counts for the way that was tried.

ALTER TABLE pgtrickle.pgt_refresh_history
    ADD COLUMN IF NOT EXISTS given_up_way text,
    ADD COLUMN IF NOT EXISTS doubt double precision;

COMMENT ON COLUMN pgtrickle.pgt_refresh_history.given_up_way IS
    'The way in which the difference was tried before it was given up; NULL, with given_up_ms: in the database.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.doubt IS
    'PostgreSQL''s estimate for the difference, as a multiple of that for FULL; NULL where it was not asked.';
