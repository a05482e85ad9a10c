-- Requests to alter.

ALTER TABLE pgtrickle.pgt_requests
    DROP CONSTRAINT IF EXISTS pgt_requests_kind_check,
    ADD CONSTRAINT pgt_requests_kind_check CHECK (kind IN ('DECLARE', 'REFRESH', 'DROP', 'ALTER'));

COMMENT ON COLUMN pgtrickle.pgt_requests.kind IS 'DECLARE: create or replace; REFRESH; DROP; ALTER.';
COMMENT ON COLUMN pgtrickle.pgt_requests.options IS
    'Of a declaration: the options by name, as in Python. Of a drop or an alteration: which table is meant, and whether its readers go, or what changes.';
