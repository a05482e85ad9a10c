-- Functions that capture are written anew after an upgrade.

ALTER TABLE pgtrickle.pgt_change_tracking
    ADD COLUMN IF NOT EXISTS form integer;

COMMENT ON COLUMN pgtrickle.pgt_change_tracking.form IS
    'In which form the capturing function is written; install writes older ones anew.';
