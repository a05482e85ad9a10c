-- Differences that took far longer than FULL was predicted to take.

ALTER TABLE pgtrickle.pgt_refresh_history
    ADD COLUMN IF NOT EXISTS given_up_ms double precision;

COMMENT ON COLUMN pgtrickle.pgt_refresh_history.given_up_ms IS
    'How long the difference was tried before FULL was computed instead, because that was predicted to be far cheaper.';
