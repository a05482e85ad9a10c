-- tables
CREATE TABLE node (id int PRIMARY KEY, parent int);
INSERT INTO node VALUES (1, NULL), (2, 1), (3, 2), (4, 1);

-- query
WITH RECURSIVE tree AS (SELECT id, 0 AS depth FROM node WHERE parent IS NULL UNION ALL SELECT n.id, t.depth + 1 FROM node n JOIN tree t ON n.parent = t.id) SELECT id, depth FROM tree;

-- cycle
INSERT INTO node VALUES (5, 3), (6, 5);

-- cycle
UPDATE node SET parent = 4 WHERE id = 3;

-- cycle
DELETE FROM node WHERE id = 4;

-- delta
WITH "__pgt_window_node" AS NOT MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    "new_id" AS "id",
    "new_parent" AS "parent"
  FROM "shop"."changes_node"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_id" AS "id",
    "old_parent" AS "parent"
  FROM "shop"."changes_node"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_delta_1" AS MATERIALIZED (
  SELECT
    __pgt_q5.*,
    CAST(ROW(__pgt_q5."id", __pgt_q5."depth") AS TEXT) COLLATE "C" AS "__pgt_image"
  FROM (
    SELECT
      0 AS "__pgt_w",
      __pgt_q4."id",
      __pgt_q4."depth",
      __pgt_q4.tableoid AS "__pgt_place",
      __pgt_q4.ctid AS "__pgt_spot"
    FROM "shop"."st_0" AS __pgt_q4
    WHERE
      FALSE
    UNION ALL
    SELECT
      __pgt_q6."__pgt_w",
      __pgt_q6."id",
      __pgt_q6."depth",
      __pgt_q6."__pgt_place",
      __pgt_q6."__pgt_spot"
    FROM (
      SELECT
        __pgt_q7."__pgt_w",
        __pgt_q7."id",
        __pgt_q7."depth",
        __pgt_q7."__pgt_place",
        __pgt_q7."__pgt_spot"
      FROM (
        SELECT
          __pgt_q8."__pgt_w",
          __pgt_q8."id_3" AS "id",
          __pgt_q8."depth_2" AS "depth",
          CAST(NULL AS OID) AS "__pgt_place",
          CAST(NULL AS tid) AS "__pgt_spot"
        FROM (
          SELECT
            __pgt_q9."__pgt_w",
            __pgt_q9."id" AS "id_3",
            0 AS "depth_2"
          FROM "__pgt_window_node" AS __pgt_q9
          WHERE
            (
              (
                __pgt_q9."parent" IS NULL
              )
            )
        ) AS __pgt_q8
      ) AS __pgt_q7
      UNION ALL
      SELECT
        __pgt_q10."__pgt_w",
        __pgt_q10."id_6" AS "id",
        __pgt_q10."?column?" AS "depth",
        __pgt_q10."__pgt_place",
        __pgt_q10."__pgt_spot"
      FROM (
        SELECT
          __pgt_q11."__pgt_w",
          __pgt_q11."id" AS "id_6",
          (
            __pgt_q12."depth" + 1
          ) AS "?column?",
          __pgt_q12."__pgt_place" AS "__pgt_place",
          __pgt_q12."__pgt_spot" AS "__pgt_spot"
        FROM "__pgt_window_node" AS __pgt_q11
        CROSS JOIN (
          SELECT
            __pgt_q13."id",
            __pgt_q13."depth",
            __pgt_q13.tableoid AS "__pgt_place",
            __pgt_q13.ctid AS "__pgt_spot"
          FROM "shop"."st_0" AS __pgt_q13
        ) AS __pgt_q12
        WHERE
          (
            __pgt_q11."parent" = __pgt_q12."id"
          )
      ) AS __pgt_q10
    ) AS __pgt_q6
  ) AS __pgt_q5
), "__pgt_part_2" AS MATERIALIZED (
  WITH RECURSIVE "__pgt_walk"("__pgt_place", "__pgt_spot") AS (
    SELECT
      __pgt_q23.tableoid,
      __pgt_q23.ctid
    FROM "__pgt_delta_1" AS __pgt_q3
    JOIN "shop"."st_0" AS __pgt_q23
      ON __pgt_q23."id" = __pgt_q3."id"
      AND CAST(ROW(__pgt_q23."id", __pgt_q23."depth") AS TEXT) COLLATE "C" = __pgt_q3."__pgt_image"
    WHERE
      __pgt_q3."__pgt_w" < 0
    UNION
    SELECT
      __pgt_q24.tableoid,
      __pgt_q24.ctid
    FROM (
      SELECT
        __pgt_q16.*,
        CAST(ROW(__pgt_q16."id", __pgt_q16."depth") AS TEXT) COLLATE "C" AS "__pgt_image"
      FROM (
        SELECT
          __pgt_q15."id",
          __pgt_q15."depth"
        FROM "shop"."st_0" AS __pgt_q15
        WHERE
          FALSE
        UNION ALL
        SELECT
          __pgt_q17."id",
          __pgt_q17."depth"
        FROM (
          SELECT
            __pgt_q18."id_6" AS "id",
            __pgt_q18."?column?" AS "depth"
          FROM (
            SELECT
              __pgt_q19."id" AS "id_6",
              (
                __pgt_q20."depth" + 1
              ) AS "?column?"
            FROM "shop"."node" AS __pgt_q19
            CROSS JOIN (
              SELECT
                __pgt_q21."id",
                __pgt_q21."depth"
              FROM "__pgt_walk" AS __pgt_q22
              JOIN "shop"."st_0" AS __pgt_q21
                ON __pgt_q21.tableoid = __pgt_q22."__pgt_place"
                AND __pgt_q21.ctid = __pgt_q22."__pgt_spot"
            ) AS __pgt_q20
            WHERE
              (
                __pgt_q19."parent" = __pgt_q20."id"
              )
          ) AS __pgt_q18
        ) AS __pgt_q17
      ) AS __pgt_q16
    ) AS __pgt_q14
    JOIN "shop"."st_0" AS __pgt_q24
      ON __pgt_q24."id" = __pgt_q14."id"
      AND CAST(ROW(__pgt_q24."id", __pgt_q24."depth") AS TEXT) COLLATE "C" = __pgt_q14."__pgt_image"
  )
  SELECT
    __pgt_q26."id",
    __pgt_q26."depth",
    __pgt_q26.tableoid AS "__pgt_place",
    __pgt_q26.ctid AS "__pgt_spot",
    CAST(ROW(__pgt_q26."id", __pgt_q26."depth") AS TEXT) COLLATE "C" AS "__pgt_image"
  FROM "__pgt_walk" AS __pgt_q25
  JOIN "shop"."st_0" AS __pgt_q26
    ON __pgt_q26.tableoid = __pgt_q25."__pgt_place"
    AND __pgt_q26.ctid = __pgt_q25."__pgt_spot"
), "__pgt_part_3" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q37."id" AS "id",
    __pgt_q37."depth" AS "depth"
  FROM "__pgt_part_2" AS __pgt_q37
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."id" AS "id",
  __pgt_q1."depth" AS "depth"
FROM (
  SELECT
    -1 AS "__pgt_w",
    __pgt_q2."id" AS "id",
    __pgt_q2."depth" AS "depth"
  FROM "__pgt_part_2" AS __pgt_q2
  UNION ALL
  SELECT
    __pgt_q27."__pgt_w" AS "__pgt_w",
    __pgt_q27."id" AS "id",
    __pgt_q27."depth" AS "depth"
  FROM (
    WITH RECURSIVE "__pgt_walk"("__pgt_w", "id", "depth") AS (
      SELECT
        __pgt_q62."__pgt_w",
        __pgt_q62."id",
        __pgt_q62."depth"
      FROM (
        SELECT
          CAST(1 AS BIGINT) AS "__pgt_w",
          __pgt_q28."id",
          __pgt_q28."depth"
        FROM (
          SELECT
            __pgt_q30.*,
            CAST(ROW(__pgt_q30."id", __pgt_q30."depth") AS TEXT) COLLATE "C" AS "__pgt_image"
          FROM (
            SELECT
              __pgt_q29."id",
              __pgt_q29."depth"
            FROM "shop"."st_0" AS __pgt_q29
            WHERE
              FALSE
            UNION ALL
            SELECT
              __pgt_q31."id",
              __pgt_q31."depth"
            FROM (
              SELECT
                __pgt_q32."id_3" AS "id",
                __pgt_q32."depth_2" AS "depth"
              FROM (
                SELECT
                  __pgt_q33."id_2" AS "id_3",
                  0 AS "depth_2"
                FROM (
                  SELECT
                    __pgt_q34."id_2",
                    __pgt_q34."parent"
                  FROM (
                    SELECT
                      __pgt_q35."id" AS "id_2",
                      __pgt_q35."parent" AS "parent"
                    FROM "shop"."node" AS __pgt_q35
                  ) AS __pgt_q34
                  WHERE
                    (
                      __pgt_q34."id_2"
                    ) IN (
                      SELECT
                        __pgt_q36."id"
                      FROM "__pgt_part_3" AS __pgt_q36
                    )
                ) AS __pgt_q33
                WHERE
                  (
                    (
                      __pgt_q33."parent" IS NULL
                    )
                  )
              ) AS __pgt_q32
            ) AS __pgt_q31
          ) AS __pgt_q30
        ) AS __pgt_q28
        WHERE
          __pgt_q28."__pgt_image" IN (
            SELECT
              __pgt_q38."__pgt_image"
            FROM "__pgt_part_2" AS __pgt_q38
          )
        UNION ALL
        SELECT
          CAST(1 AS BIGINT) AS "__pgt_w",
          __pgt_q39."id",
          __pgt_q39."depth"
        FROM (
          SELECT
            __pgt_q41.*,
            CAST(ROW(__pgt_q41."id", __pgt_q41."depth") AS TEXT) COLLATE "C" AS "__pgt_image"
          FROM (
            SELECT
              __pgt_q40."id",
              __pgt_q40."depth"
            FROM "shop"."st_0" AS __pgt_q40
            WHERE
              FALSE
            UNION ALL
            SELECT
              __pgt_q42."id",
              __pgt_q42."depth"
            FROM (
              SELECT
                __pgt_q43."id_6" AS "id",
                __pgt_q43."?column?" AS "depth"
              FROM (
                SELECT
                  __pgt_q44."id_4" AS "id_6",
                  (
                    __pgt_q48."depth" + 1
                  ) AS "?column?"
                FROM (
                  SELECT
                    __pgt_q45."id_4",
                    __pgt_q45."parent_2"
                  FROM (
                    SELECT
                      __pgt_q46."id" AS "id_4",
                      __pgt_q46."parent" AS "parent_2"
                    FROM "shop"."node" AS __pgt_q46
                  ) AS __pgt_q45
                  WHERE
                    (
                      __pgt_q45."id_4"
                    ) IN (
                      SELECT
                        __pgt_q47."id"
                      FROM "__pgt_part_3" AS __pgt_q47
                    )
                ) AS __pgt_q44
                CROSS JOIN (
                  SELECT
                    __pgt_q49."id",
                    __pgt_q49."depth",
                    __pgt_q49."__pgt_place",
                    __pgt_q49."__pgt_spot"
                  FROM (
                    SELECT
                      __pgt_q50."id",
                      __pgt_q50."depth",
                      __pgt_q50.tableoid AS "__pgt_place",
                      __pgt_q50.ctid AS "__pgt_spot"
                    FROM "shop"."st_0" AS __pgt_q50
                  ) AS __pgt_q49
                  WHERE
                    NOT (__pgt_q49."__pgt_place", __pgt_q49."__pgt_spot") IN (
                      SELECT
                        __pgt_q51."__pgt_place",
                        __pgt_q51."__pgt_spot"
                      FROM "__pgt_part_2" AS __pgt_q51
                    )
                ) AS __pgt_q48
                WHERE
                  (
                    __pgt_q44."parent_2" = __pgt_q48."id"
                  )
              ) AS __pgt_q43
            ) AS __pgt_q42
          ) AS __pgt_q41
        ) AS __pgt_q39
        WHERE
          __pgt_q39."__pgt_image" IN (
            SELECT
              __pgt_q52."__pgt_image"
            FROM "__pgt_part_2" AS __pgt_q52
          )
        UNION ALL
        SELECT
          __pgt_q55."__pgt_w",
          __pgt_q55."id",
          __pgt_q55."depth"
        FROM (
          SELECT
            CAST((
              SUM(__pgt_q53."__pgt_w") OVER same
            ) AS BIGINT) AS "__pgt_w",
            ROW_NUMBER() OVER same AS __pgt_nth,
            __pgt_q53."id",
            __pgt_q53."depth"
          FROM "__pgt_delta_1" AS __pgt_q53
          WHERE
            NOT __pgt_q53."__pgt_image" IN (
              SELECT
                __pgt_q54."__pgt_image"
              FROM "__pgt_part_2" AS __pgt_q54
            )
            AND (
              __pgt_q53."__pgt_spot" IS NULL
              OR NOT (__pgt_q53."__pgt_place", __pgt_q53."__pgt_spot") IN (
                SELECT
                  __pgt_q56."__pgt_place",
                  __pgt_q56."__pgt_spot"
                FROM "__pgt_part_2" AS __pgt_q56
              )
            )
          WINDOW same AS (PARTITION BY __pgt_q53."__pgt_image")
        ) AS __pgt_q55
        WHERE
          __pgt_q55.__pgt_nth = 1 AND __pgt_q55."__pgt_w" > 0
      ) AS __pgt_q62
      UNION ALL
      SELECT
        __pgt_q57."__pgt_w",
        __pgt_q57."id",
        __pgt_q57."depth"
      FROM (
        SELECT
          __pgt_q58."__pgt_w",
          __pgt_q58."id_6" AS "id",
          __pgt_q58."?column?" AS "depth"
        FROM (
          SELECT
            __pgt_q60."__pgt_w",
            __pgt_q59."id" AS "id_6",
            (
              __pgt_q60."depth" + 1
            ) AS "?column?"
          FROM "shop"."node" AS __pgt_q59
          CROSS JOIN (
            SELECT
              __pgt_q61."__pgt_w",
              __pgt_q61."id",
              __pgt_q61."depth"
            FROM "__pgt_walk" AS __pgt_q61
          ) AS __pgt_q60
          WHERE
            (
              __pgt_q59."parent" = __pgt_q60."id"
            )
        ) AS __pgt_q58
      ) AS __pgt_q57
    )
    SELECT
      __pgt_q63."__pgt_w",
      __pgt_q63."id",
      __pgt_q63."depth"
    FROM "__pgt_walk" AS __pgt_q63
  ) AS __pgt_q27
) AS __pgt_q1
