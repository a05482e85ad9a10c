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
WITH "__pgt_window_node" AS (
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
    __pgt_q7.*,
    CAST(ROW(__pgt_q7."id", __pgt_q7."depth") AS TEXT) COLLATE "C" AS "__pgt_image"
  FROM (
    SELECT
      0 AS "__pgt_w",
      __pgt_q6."id",
      __pgt_q6."depth",
      __pgt_q6.tableoid AS "__pgt_place",
      __pgt_q6.ctid AS "__pgt_spot"
    FROM "shop"."st_0" AS __pgt_q6
    WHERE
      FALSE
    UNION ALL
    SELECT
      __pgt_q8."__pgt_w",
      __pgt_q8."id",
      __pgt_q8."depth",
      __pgt_q8."__pgt_place",
      __pgt_q8."__pgt_spot"
    FROM (
      SELECT
        __pgt_q9."__pgt_w",
        __pgt_q9."id",
        __pgt_q9."depth",
        __pgt_q9."__pgt_place",
        __pgt_q9."__pgt_spot"
      FROM (
        SELECT
          __pgt_q10."__pgt_w",
          __pgt_q10."id_3" AS "id",
          __pgt_q10."depth_2" AS "depth",
          CAST(NULL AS OID) AS "__pgt_place",
          CAST(NULL AS tid) AS "__pgt_spot"
        FROM (
          SELECT
            __pgt_q11."__pgt_w",
            __pgt_q11."id_2" AS "id_3",
            0 AS "depth_2"
          FROM (
            SELECT
              __pgt_q12."__pgt_w",
              __pgt_q12."id_2",
              __pgt_q12."parent"
            FROM (
              SELECT
                __pgt_q13."__pgt_w",
                __pgt_q13."id" AS "id_2",
                __pgt_q13."parent" AS "parent"
              FROM "__pgt_window_node" AS __pgt_q13
            ) AS __pgt_q12
            WHERE
              (
                __pgt_q12."parent" IS NULL
              )
          ) AS __pgt_q11
        ) AS __pgt_q10
      ) AS __pgt_q9
      UNION ALL
      SELECT
        __pgt_q14."__pgt_w",
        __pgt_q14."id",
        __pgt_q14."depth",
        __pgt_q14."__pgt_place",
        __pgt_q14."__pgt_spot"
      FROM (
        SELECT
          __pgt_q15."__pgt_w",
          __pgt_q15."id_6" AS "id",
          __pgt_q15."?column?" AS "depth",
          __pgt_q15."__pgt_place" AS "__pgt_place",
          __pgt_q15."__pgt_spot" AS "__pgt_spot"
        FROM (
          SELECT
            __pgt_q16."__pgt_w",
            __pgt_q16."id_4" AS "id_6",
            (
              __pgt_q16."depth_3" + 1
            ) AS "?column?",
            __pgt_q16."__pgt_place" AS "__pgt_place",
            __pgt_q16."__pgt_spot" AS "__pgt_spot"
          FROM (
            SELECT
              __pgt_q17."__pgt_w" AS "__pgt_w",
              __pgt_q17."id_4",
              __pgt_q17."parent_2",
              __pgt_q19."id_5",
              __pgt_q19."depth_3",
              __pgt_q19."__pgt_place",
              __pgt_q19."__pgt_spot"
            FROM (
              SELECT
                __pgt_q18."__pgt_w",
                __pgt_q18."id" AS "id_4",
                __pgt_q18."parent" AS "parent_2"
              FROM "__pgt_window_node" AS __pgt_q18
            ) AS __pgt_q17
            CROSS JOIN (
              SELECT
                __pgt_q20."id_3_2" AS "id_5",
                __pgt_q20."depth_2_2" AS "depth_3",
                __pgt_q20."__pgt_place" AS "__pgt_place",
                __pgt_q20."__pgt_spot" AS "__pgt_spot"
              FROM (
                SELECT
                  __pgt_q21."id" AS "id_3_2",
                  __pgt_q21."depth" AS "depth_2_2",
                  __pgt_q21."__pgt_place" AS "__pgt_place",
                  __pgt_q21."__pgt_spot" AS "__pgt_spot"
                FROM (
                  SELECT
                    __pgt_q22."id",
                    __pgt_q22."depth",
                    __pgt_q22.tableoid AS "__pgt_place",
                    __pgt_q22.ctid AS "__pgt_spot"
                  FROM "shop"."st_0" AS __pgt_q22
                ) AS __pgt_q21
              ) AS __pgt_q20
            ) AS __pgt_q19
            WHERE
              (
                __pgt_q17."parent_2" = __pgt_q19."id_5"
              )
          ) AS __pgt_q16
        ) AS __pgt_q15
      ) AS __pgt_q14
    ) AS __pgt_q8
  ) AS __pgt_q7
), "__pgt_part_2" AS MATERIALIZED (
  WITH RECURSIVE "__pgt_walk"("__pgt_place", "__pgt_spot") AS (
    SELECT
      __pgt_q36.tableoid,
      __pgt_q36.ctid
    FROM "__pgt_delta_1" AS __pgt_q5
    JOIN "shop"."st_0" AS __pgt_q36
      ON __pgt_q36."id" = __pgt_q5."id"
      AND CAST(ROW(__pgt_q36."id", __pgt_q36."depth") AS TEXT) COLLATE "C" = __pgt_q5."__pgt_image"
    WHERE
      __pgt_q5."__pgt_w" < 0
    UNION
    SELECT
      __pgt_q37.tableoid,
      __pgt_q37.ctid
    FROM (
      SELECT
        __pgt_q25.*,
        CAST(ROW(__pgt_q25."id", __pgt_q25."depth") AS TEXT) COLLATE "C" AS "__pgt_image"
      FROM (
        SELECT
          __pgt_q24."id",
          __pgt_q24."depth"
        FROM "shop"."st_0" AS __pgt_q24
        WHERE
          FALSE
        UNION ALL
        SELECT
          __pgt_q26."id",
          __pgt_q26."depth"
        FROM (
          SELECT
            __pgt_q27."id_6" AS "id",
            __pgt_q27."?column?" AS "depth"
          FROM (
            SELECT
              __pgt_q28."id_4" AS "id_6",
              (
                __pgt_q28."depth_3" + 1
              ) AS "?column?"
            FROM (
              SELECT
                __pgt_q29."id_4",
                __pgt_q29."parent_2",
                __pgt_q31."id_5",
                __pgt_q31."depth_3"
              FROM (
                SELECT
                  __pgt_q30."id" AS "id_4",
                  __pgt_q30."parent" AS "parent_2"
                FROM "shop"."node" AS __pgt_q30
              ) AS __pgt_q29
              CROSS JOIN (
                SELECT
                  __pgt_q32."id_3_2" AS "id_5",
                  __pgt_q32."depth_2_2" AS "depth_3"
                FROM (
                  SELECT
                    __pgt_q33."id" AS "id_3_2",
                    __pgt_q33."depth" AS "depth_2_2"
                  FROM (
                    SELECT
                      __pgt_q34."id",
                      __pgt_q34."depth"
                    FROM "__pgt_walk" AS __pgt_q35
                    JOIN "shop"."st_0" AS __pgt_q34
                      ON __pgt_q34.tableoid = __pgt_q35."__pgt_place"
                      AND __pgt_q34.ctid = __pgt_q35."__pgt_spot"
                  ) AS __pgt_q33
                ) AS __pgt_q32
              ) AS __pgt_q31
              WHERE
                (
                  __pgt_q29."parent_2" = __pgt_q31."id_5"
                )
            ) AS __pgt_q28
          ) AS __pgt_q27
        ) AS __pgt_q26
      ) AS __pgt_q25
    ) AS __pgt_q23
    JOIN "shop"."st_0" AS __pgt_q37
      ON __pgt_q37."id" = __pgt_q23."id"
      AND CAST(ROW(__pgt_q37."id", __pgt_q37."depth") AS TEXT) COLLATE "C" = __pgt_q23."__pgt_image"
  )
  SELECT
    __pgt_q39."id",
    __pgt_q39."depth",
    __pgt_q39.tableoid AS "__pgt_place",
    __pgt_q39.ctid AS "__pgt_spot",
    CAST(ROW(__pgt_q39."id", __pgt_q39."depth") AS TEXT) COLLATE "C" AS "__pgt_image"
  FROM "__pgt_walk" AS __pgt_q38
  JOIN "shop"."st_0" AS __pgt_q39
    ON __pgt_q39.tableoid = __pgt_q38."__pgt_place"
    AND __pgt_q39.ctid = __pgt_q38."__pgt_spot"
), "__pgt_part_3" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q51."id" AS "id",
    __pgt_q51."depth" AS "depth"
  FROM "__pgt_part_2" AS __pgt_q51
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."id_8" AS "id",
  __pgt_q1."depth_5" AS "depth"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."id_7" AS "id_8",
    __pgt_q2."depth_4" AS "depth_5"
  FROM (
    SELECT
      __pgt_q3."__pgt_w",
      __pgt_q3."id" AS "id_7",
      __pgt_q3."depth" AS "depth_4"
    FROM (
      SELECT
        -1 AS "__pgt_w",
        __pgt_q4."id" AS "id",
        __pgt_q4."depth" AS "depth"
      FROM "__pgt_part_2" AS __pgt_q4
      UNION ALL
      SELECT
        __pgt_q40."__pgt_w" AS "__pgt_w",
        __pgt_q40."id" AS "id",
        __pgt_q40."depth" AS "depth"
      FROM (
        WITH RECURSIVE "__pgt_walk"("__pgt_w", "id", "depth") AS (
          SELECT
            __pgt_q83."__pgt_w",
            __pgt_q83."id",
            __pgt_q83."depth"
          FROM (
            SELECT
              CAST(1 AS BIGINT) AS "__pgt_w",
              __pgt_q41."id",
              __pgt_q41."depth"
            FROM (
              SELECT
                __pgt_q43.*,
                CAST(ROW(__pgt_q43."id", __pgt_q43."depth") AS TEXT) COLLATE "C" AS "__pgt_image"
              FROM (
                SELECT
                  __pgt_q42."id",
                  __pgt_q42."depth"
                FROM "shop"."st_0" AS __pgt_q42
                WHERE
                  FALSE
                UNION ALL
                SELECT
                  __pgt_q44."id",
                  __pgt_q44."depth"
                FROM (
                  SELECT
                    __pgt_q45."id_3" AS "id",
                    __pgt_q45."depth_2" AS "depth"
                  FROM (
                    SELECT
                      __pgt_q46."id_2" AS "id_3",
                      0 AS "depth_2"
                    FROM (
                      SELECT
                        __pgt_q47."id_2",
                        __pgt_q47."parent"
                      FROM (
                        SELECT
                          __pgt_q48."id_2",
                          __pgt_q48."parent"
                        FROM (
                          SELECT
                            __pgt_q49."id" AS "id_2",
                            __pgt_q49."parent" AS "parent"
                          FROM "shop"."node" AS __pgt_q49
                        ) AS __pgt_q48
                        WHERE
                          (
                            __pgt_q48."id_2"
                          ) IN (
                            SELECT
                              __pgt_q50."id"
                            FROM "__pgt_part_3" AS __pgt_q50
                          )
                      ) AS __pgt_q47
                      WHERE
                        (
                          __pgt_q47."parent" IS NULL
                        )
                    ) AS __pgt_q46
                  ) AS __pgt_q45
                ) AS __pgt_q44
              ) AS __pgt_q43
            ) AS __pgt_q41
            WHERE
              __pgt_q41."__pgt_image" IN (
                SELECT
                  __pgt_q52."__pgt_image"
                FROM "__pgt_part_2" AS __pgt_q52
              )
            UNION ALL
            SELECT
              CAST(1 AS BIGINT) AS "__pgt_w",
              __pgt_q53."id",
              __pgt_q53."depth"
            FROM (
              SELECT
                __pgt_q55.*,
                CAST(ROW(__pgt_q55."id", __pgt_q55."depth") AS TEXT) COLLATE "C" AS "__pgt_image"
              FROM (
                SELECT
                  __pgt_q54."id",
                  __pgt_q54."depth"
                FROM "shop"."st_0" AS __pgt_q54
                WHERE
                  FALSE
                UNION ALL
                SELECT
                  __pgt_q56."id",
                  __pgt_q56."depth"
                FROM (
                  SELECT
                    __pgt_q57."id_6" AS "id",
                    __pgt_q57."?column?" AS "depth"
                  FROM (
                    SELECT
                      __pgt_q58."id_4" AS "id_6",
                      (
                        __pgt_q58."depth_3" + 1
                      ) AS "?column?"
                    FROM (
                      SELECT
                        __pgt_q59."id_4",
                        __pgt_q59."parent_2",
                        __pgt_q63."id_5",
                        __pgt_q63."depth_3"
                      FROM (
                        SELECT
                          __pgt_q60."id_4",
                          __pgt_q60."parent_2"
                        FROM (
                          SELECT
                            __pgt_q61."id" AS "id_4",
                            __pgt_q61."parent" AS "parent_2"
                          FROM "shop"."node" AS __pgt_q61
                        ) AS __pgt_q60
                        WHERE
                          (
                            __pgt_q60."id_4"
                          ) IN (
                            SELECT
                              __pgt_q62."id"
                            FROM "__pgt_part_3" AS __pgt_q62
                          )
                      ) AS __pgt_q59
                      CROSS JOIN (
                        SELECT
                          __pgt_q64."id_3_2" AS "id_5",
                          __pgt_q64."depth_2_2" AS "depth_3"
                        FROM (
                          SELECT
                            __pgt_q65."id" AS "id_3_2",
                            __pgt_q65."depth" AS "depth_2_2"
                          FROM (
                            SELECT
                              __pgt_q66."id",
                              __pgt_q66."depth",
                              __pgt_q66."__pgt_place",
                              __pgt_q66."__pgt_spot"
                            FROM (
                              SELECT
                                __pgt_q67."id",
                                __pgt_q67."depth",
                                __pgt_q67.tableoid AS "__pgt_place",
                                __pgt_q67.ctid AS "__pgt_spot"
                              FROM "shop"."st_0" AS __pgt_q67
                            ) AS __pgt_q66
                            WHERE
                              NOT (__pgt_q66."__pgt_place", __pgt_q66."__pgt_spot") IN (
                                SELECT
                                  __pgt_q68."__pgt_place",
                                  __pgt_q68."__pgt_spot"
                                FROM "__pgt_part_2" AS __pgt_q68
                              )
                          ) AS __pgt_q65
                        ) AS __pgt_q64
                      ) AS __pgt_q63
                      WHERE
                        (
                          __pgt_q59."parent_2" = __pgt_q63."id_5"
                        )
                    ) AS __pgt_q58
                  ) AS __pgt_q57
                ) AS __pgt_q56
              ) AS __pgt_q55
            ) AS __pgt_q53
            WHERE
              __pgt_q53."__pgt_image" IN (
                SELECT
                  __pgt_q69."__pgt_image"
                FROM "__pgt_part_2" AS __pgt_q69
              )
            UNION ALL
            SELECT
              __pgt_q72."__pgt_w",
              __pgt_q72."id",
              __pgt_q72."depth"
            FROM (
              SELECT
                CAST((
                  SUM(__pgt_q70."__pgt_w") OVER same
                ) AS BIGINT) AS "__pgt_w",
                ROW_NUMBER() OVER same AS __pgt_nth,
                __pgt_q70."id",
                __pgt_q70."depth"
              FROM "__pgt_delta_1" AS __pgt_q70
              WHERE
                NOT __pgt_q70."__pgt_image" IN (
                  SELECT
                    __pgt_q71."__pgt_image"
                  FROM "__pgt_part_2" AS __pgt_q71
                )
                AND (
                  __pgt_q70."__pgt_spot" IS NULL
                  OR NOT (__pgt_q70."__pgt_place", __pgt_q70."__pgt_spot") IN (
                    SELECT
                      __pgt_q73."__pgt_place",
                      __pgt_q73."__pgt_spot"
                    FROM "__pgt_part_2" AS __pgt_q73
                  )
                )
              WINDOW same AS (PARTITION BY __pgt_q70."__pgt_image")
            ) AS __pgt_q72
            WHERE
              __pgt_q72.__pgt_nth = 1 AND __pgt_q72."__pgt_w" > 0
          ) AS __pgt_q83
          UNION ALL
          SELECT
            __pgt_q74."__pgt_w",
            __pgt_q74."id",
            __pgt_q74."depth"
          FROM (
            SELECT
              __pgt_q75."__pgt_w",
              __pgt_q75."id_6" AS "id",
              __pgt_q75."?column?" AS "depth"
            FROM (
              SELECT
                __pgt_q76."__pgt_w",
                __pgt_q76."id_4" AS "id_6",
                (
                  __pgt_q76."depth_3" + 1
                ) AS "?column?"
              FROM (
                SELECT
                  __pgt_q79."__pgt_w" AS "__pgt_w",
                  __pgt_q77."id_4",
                  __pgt_q77."parent_2",
                  __pgt_q79."id_5",
                  __pgt_q79."depth_3"
                FROM (
                  SELECT
                    __pgt_q78."id" AS "id_4",
                    __pgt_q78."parent" AS "parent_2"
                  FROM "shop"."node" AS __pgt_q78
                ) AS __pgt_q77
                CROSS JOIN (
                  SELECT
                    __pgt_q80."__pgt_w",
                    __pgt_q80."id_3_2" AS "id_5",
                    __pgt_q80."depth_2_2" AS "depth_3"
                  FROM (
                    SELECT
                      __pgt_q81."__pgt_w",
                      __pgt_q81."id" AS "id_3_2",
                      __pgt_q81."depth" AS "depth_2_2"
                    FROM (
                      SELECT
                        __pgt_q82."__pgt_w",
                        __pgt_q82."id",
                        __pgt_q82."depth"
                      FROM "__pgt_walk" AS __pgt_q82
                    ) AS __pgt_q81
                  ) AS __pgt_q80
                ) AS __pgt_q79
                WHERE
                  (
                    __pgt_q77."parent_2" = __pgt_q79."id_5"
                  )
              ) AS __pgt_q76
            ) AS __pgt_q75
          ) AS __pgt_q74
        )
        SELECT
          __pgt_q84."__pgt_w",
          __pgt_q84."id",
          __pgt_q84."depth"
        FROM "__pgt_walk" AS __pgt_q84
      ) AS __pgt_q40
    ) AS __pgt_q3
  ) AS __pgt_q2
) AS __pgt_q1
