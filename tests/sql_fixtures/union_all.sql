-- tables
CREATE TABLE clicks (page text, visitor int);
CREATE TABLE blocked (page text, visitor int);
INSERT INTO clicks VALUES ('a', 1), ('a', 1), ('b', 2), (NULL, 3);
INSERT INTO blocked VALUES ('a', 1), (NULL, 3);

-- query
SELECT page, visitor FROM clicks UNION ALL SELECT page, visitor FROM blocked;

-- cycle
INSERT INTO clicks VALUES ('b', 2), ('c', 1);
DELETE FROM blocked WHERE page = 'a';

-- cycle
DELETE FROM clicks WHERE page = 'a';
INSERT INTO blocked VALUES ('b', 2), (NULL, 3);

-- cycle
INSERT INTO clicks VALUES (NULL, 3), (NULL, 3);

-- delta
WITH "__pgt_window_clicks" AS NOT MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    "new_page" AS "page",
    "new_visitor" AS "visitor"
  FROM "shop"."changes_clicks"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_page" AS "page",
    "old_visitor" AS "visitor"
  FROM "shop"."changes_clicks"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_window_blocked" AS NOT MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    "new_page" AS "page",
    "new_visitor" AS "visitor"
  FROM "shop"."changes_blocked"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_page" AS "page",
    "old_visitor" AS "visitor"
  FROM "shop"."changes_blocked"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."page_5" AS "page",
  __pgt_q1."visitor_5" AS "visitor"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."page" AS "page_5",
    __pgt_q2."visitor" AS "visitor_5"
  FROM "__pgt_window_clicks" AS __pgt_q2
  UNION ALL
  SELECT
    __pgt_q3."__pgt_w",
    __pgt_q3."page" AS "page_5",
    __pgt_q3."visitor" AS "visitor_5"
  FROM "__pgt_window_blocked" AS __pgt_q3
) AS __pgt_q1
