-- Proof that capture was never torn.

ALTER TABLE pgtrickle.pgt_change_tracking
    ADD COLUMN IF NOT EXISTS digest text,
    ADD COLUMN IF NOT EXISTS epoch bigint;

COMMENT ON COLUMN pgtrickle.pgt_change_tracking.digest IS
    'What pgt_capture_digest() gave when this package last touched the capture. Another one now means that somebody '
    'else did.';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.epoch IS
    'The transaction since which capture is whole. A reader whose frontier is of another epoch may have missed changes.';
