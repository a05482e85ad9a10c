COMMENT ON COLUMN pgtrickle.pgt_refresh_history.way IS
    'Who computed it: the database, Spark by one pushed statement or by several slices of it, or Spark by a lowered plan.';
