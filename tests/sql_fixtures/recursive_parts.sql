-- tables
CREATE TABLE needs (whole text, part text, n numeric);
INSERT INTO needs VALUES (NULL, 'car', 1), ('car', 'wheel', 4), ('car', 'engine', 1), ('wheel', 'nut', 5), ('engine', 'nut', 20);

-- query
WITH RECURSIVE b AS (SELECT part, n FROM needs WHERE whole IS NULL UNION ALL SELECT c.part, b.n * c.n FROM b JOIN needs c ON c.whole = b.part) SELECT part, n FROM b;

-- cycle
UPDATE needs SET n = 4.0 WHERE part = 'wheel';

-- cycle
INSERT INTO needs VALUES ('car', 'wheel', 1), ('nut', 'steel', 0.01);

-- cycle
DELETE FROM needs WHERE part = 'engine';

-- delta
WITH "__pgt_window_needs" AS (
  SELECT
    1 AS "__pgt_w",
    "new_whole" AS "whole",
    "new_part" AS "part",
    "new_n" AS "n"
  FROM "shop"."changes_needs"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_whole" AS "whole",
    "old_part" AS "part",
    "old_n" AS "n"
  FROM "shop"."changes_needs"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_delta_1" AS MATERIALIZED (
  SELECT
    __pgt_q7.*,
    CAST(ROW(__pgt_q7."part", __pgt_q7."n") AS TEXT) COLLATE "C" AS "__pgt_image"
  FROM (
    SELECT
      0 AS "__pgt_w",
      __pgt_q6."part",
      __pgt_q6."n",
      __pgt_q6.tableoid AS "__pgt_place",
      __pgt_q6.ctid AS "__pgt_spot"
    FROM "shop"."st_0" AS __pgt_q6
    WHERE
      FALSE
    UNION ALL
    SELECT
      __pgt_q8."__pgt_w",
      __pgt_q8."part",
      __pgt_q8."n",
      __pgt_q8."__pgt_place",
      __pgt_q8."__pgt_spot"
    FROM (
      SELECT
        __pgt_q9."__pgt_w",
        __pgt_q9."part",
        __pgt_q9."n",
        __pgt_q9."__pgt_place",
        __pgt_q9."__pgt_spot"
      FROM (
        SELECT
          __pgt_q10."__pgt_w",
          __pgt_q10."part_3" AS "part",
          __pgt_q10."n_3" AS "n",
          CAST(NULL AS OID) AS "__pgt_place",
          CAST(NULL AS tid) AS "__pgt_spot"
        FROM (
          SELECT
            __pgt_q11."__pgt_w",
            __pgt_q11."part_2" AS "part_3",
            __pgt_q11."n_2" AS "n_3"
          FROM (
            SELECT
              __pgt_q12."__pgt_w",
              __pgt_q12."whole",
              __pgt_q12."part_2",
              __pgt_q12."n_2"
            FROM (
              SELECT
                __pgt_q13."__pgt_w",
                __pgt_q13."whole" AS "whole",
                __pgt_q13."part" AS "part_2",
                __pgt_q13."n" AS "n_2"
              FROM "__pgt_window_needs" AS __pgt_q13
            ) AS __pgt_q12
            WHERE
              (
                __pgt_q12."whole" IS NULL
              )
          ) AS __pgt_q11
        ) AS __pgt_q10
      ) AS __pgt_q9
      UNION ALL
      SELECT
        __pgt_q14."__pgt_w",
        __pgt_q14."part",
        __pgt_q14."n",
        __pgt_q14."__pgt_place",
        __pgt_q14."__pgt_spot"
      FROM (
        SELECT
          __pgt_q15."__pgt_w",
          __pgt_q15."part_6" AS "part",
          __pgt_q15."?column?" AS "n",
          __pgt_q15."__pgt_place" AS "__pgt_place",
          __pgt_q15."__pgt_spot" AS "__pgt_spot"
        FROM (
          SELECT
            __pgt_q16."__pgt_w",
            __pgt_q16."part_5" AS "part_6",
            (
              __pgt_q16."n_4" * __pgt_q16."n_5"
            ) AS "?column?",
            __pgt_q16."__pgt_place" AS "__pgt_place",
            __pgt_q16."__pgt_spot" AS "__pgt_spot"
          FROM (
            SELECT
              __pgt_q21."__pgt_w" AS "__pgt_w",
              __pgt_q17."part_4",
              __pgt_q17."n_4",
              __pgt_q17."__pgt_place",
              __pgt_q17."__pgt_spot",
              __pgt_q21."whole_2",
              __pgt_q21."part_5",
              __pgt_q21."n_5"
            FROM (
              SELECT
                __pgt_q18."part_3_2" AS "part_4",
                __pgt_q18."n_3_2" AS "n_4",
                __pgt_q18."__pgt_place" AS "__pgt_place",
                __pgt_q18."__pgt_spot" AS "__pgt_spot"
              FROM (
                SELECT
                  __pgt_q19."part" AS "part_3_2",
                  __pgt_q19."n" AS "n_3_2",
                  __pgt_q19."__pgt_place" AS "__pgt_place",
                  __pgt_q19."__pgt_spot" AS "__pgt_spot"
                FROM (
                  SELECT
                    __pgt_q20."part",
                    __pgt_q20."n",
                    __pgt_q20.tableoid AS "__pgt_place",
                    __pgt_q20.ctid AS "__pgt_spot"
                  FROM "shop"."st_0" AS __pgt_q20
                ) AS __pgt_q19
              ) AS __pgt_q18
            ) AS __pgt_q17
            CROSS JOIN (
              SELECT
                __pgt_q22."__pgt_w",
                __pgt_q22."whole" AS "whole_2",
                __pgt_q22."part" AS "part_5",
                __pgt_q22."n" AS "n_5"
              FROM "__pgt_window_needs" AS __pgt_q22
            ) AS __pgt_q21
            WHERE
              (
                __pgt_q21."whole_2" = __pgt_q17."part_4"
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
      ON (
        __pgt_q36."part" = __pgt_q5."part"
        OR (
          __pgt_q36."part" IS NULL AND __pgt_q5."part" IS NULL
        )
      )
      AND CAST(ROW(__pgt_q36."part", __pgt_q36."n") AS TEXT) COLLATE "C" = __pgt_q5."__pgt_image"
    WHERE
      __pgt_q5."__pgt_w" < 0
    UNION
    SELECT
      __pgt_q37.tableoid,
      __pgt_q37.ctid
    FROM (
      SELECT
        __pgt_q25.*,
        CAST(ROW(__pgt_q25."part", __pgt_q25."n") AS TEXT) COLLATE "C" AS "__pgt_image"
      FROM (
        SELECT
          __pgt_q24."part",
          __pgt_q24."n"
        FROM "shop"."st_0" AS __pgt_q24
        WHERE
          FALSE
        UNION ALL
        SELECT
          __pgt_q26."part",
          __pgt_q26."n"
        FROM (
          SELECT
            __pgt_q27."part_6" AS "part",
            __pgt_q27."?column?" AS "n"
          FROM (
            SELECT
              __pgt_q28."part_5" AS "part_6",
              (
                __pgt_q28."n_4" * __pgt_q28."n_5"
              ) AS "?column?"
            FROM (
              SELECT
                __pgt_q29."part_4",
                __pgt_q29."n_4",
                __pgt_q34."whole_2",
                __pgt_q34."part_5",
                __pgt_q34."n_5"
              FROM (
                SELECT
                  __pgt_q30."part_3_2" AS "part_4",
                  __pgt_q30."n_3_2" AS "n_4"
                FROM (
                  SELECT
                    __pgt_q31."part" AS "part_3_2",
                    __pgt_q31."n" AS "n_3_2"
                  FROM (
                    SELECT
                      __pgt_q32."part",
                      __pgt_q32."n"
                    FROM "__pgt_walk" AS __pgt_q33
                    JOIN "shop"."st_0" AS __pgt_q32
                      ON __pgt_q32.tableoid = __pgt_q33."__pgt_place"
                      AND __pgt_q32.ctid = __pgt_q33."__pgt_spot"
                  ) AS __pgt_q31
                ) AS __pgt_q30
              ) AS __pgt_q29
              CROSS JOIN (
                SELECT
                  __pgt_q35."whole" AS "whole_2",
                  __pgt_q35."part" AS "part_5",
                  __pgt_q35."n" AS "n_5"
                FROM "shop"."needs" AS __pgt_q35
              ) AS __pgt_q34
              WHERE
                (
                  __pgt_q34."whole_2" = __pgt_q29."part_4"
                )
            ) AS __pgt_q28
          ) AS __pgt_q27
        ) AS __pgt_q26
      ) AS __pgt_q25
    ) AS __pgt_q23
    JOIN "shop"."st_0" AS __pgt_q37
      ON (
        __pgt_q37."part" = __pgt_q23."part"
        OR (
          __pgt_q37."part" IS NULL AND __pgt_q23."part" IS NULL
        )
      )
      AND CAST(ROW(__pgt_q37."part", __pgt_q37."n") AS TEXT) COLLATE "C" = __pgt_q23."__pgt_image"
  )
  SELECT
    __pgt_q39."part",
    __pgt_q39."n",
    __pgt_q39.tableoid AS "__pgt_place",
    __pgt_q39.ctid AS "__pgt_spot",
    CAST(ROW(__pgt_q39."part", __pgt_q39."n") AS TEXT) COLLATE "C" AS "__pgt_image"
  FROM "__pgt_walk" AS __pgt_q38
  JOIN "shop"."st_0" AS __pgt_q39
    ON __pgt_q39.tableoid = __pgt_q38."__pgt_place"
    AND __pgt_q39.ctid = __pgt_q38."__pgt_spot"
), "__pgt_part_3" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q51."part" AS "part"
  FROM "__pgt_part_2" AS __pgt_q51
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."part_8" AS "part",
  __pgt_q1."n_7" AS "n"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."part_7" AS "part_8",
    __pgt_q2."n_6" AS "n_7"
  FROM (
    SELECT
      __pgt_q3."__pgt_w",
      __pgt_q3."part" AS "part_7",
      __pgt_q3."n" AS "n_6"
    FROM (
      SELECT
        -1 AS "__pgt_w",
        __pgt_q4."part" AS "part",
        __pgt_q4."n" AS "n"
      FROM "__pgt_part_2" AS __pgt_q4
      UNION ALL
      SELECT
        __pgt_q40."__pgt_w" AS "__pgt_w",
        __pgt_q40."part" AS "part",
        __pgt_q40."n" AS "n"
      FROM (
        WITH RECURSIVE "__pgt_walk"("__pgt_w", "part", "n") AS (
          SELECT
            __pgt_q85."__pgt_w",
            __pgt_q85."part",
            __pgt_q85."n"
          FROM (
            SELECT
              CAST(1 AS BIGINT) AS "__pgt_w",
              __pgt_q41."part",
              __pgt_q41."n"
            FROM (
              SELECT
                __pgt_q43.*,
                CAST(ROW(__pgt_q43."part", __pgt_q43."n") AS TEXT) COLLATE "C" AS "__pgt_image"
              FROM (
                SELECT
                  __pgt_q42."part",
                  __pgt_q42."n"
                FROM "shop"."st_0" AS __pgt_q42
                WHERE
                  FALSE
                UNION ALL
                SELECT
                  __pgt_q44."part",
                  __pgt_q44."n"
                FROM (
                  SELECT
                    __pgt_q45."part_3" AS "part",
                    __pgt_q45."n_3" AS "n"
                  FROM (
                    SELECT
                      __pgt_q46."part_2" AS "part_3",
                      __pgt_q46."n_2" AS "n_3"
                    FROM (
                      SELECT
                        __pgt_q47."whole",
                        __pgt_q47."part_2",
                        __pgt_q47."n_2"
                      FROM (
                        SELECT
                          __pgt_q48."whole",
                          __pgt_q48."part_2",
                          __pgt_q48."n_2"
                        FROM (
                          SELECT
                            __pgt_q49."whole" AS "whole",
                            __pgt_q49."part" AS "part_2",
                            __pgt_q49."n" AS "n_2"
                          FROM "shop"."needs" AS __pgt_q49
                        ) AS __pgt_q48
                        WHERE
                          (
                            __pgt_q48."part_2"
                          ) IN (
                            SELECT
                              __pgt_q50."part"
                            FROM "__pgt_part_3" AS __pgt_q50
                          )
                        UNION ALL
                        SELECT
                          __pgt_q48."whole",
                          __pgt_q48."part_2",
                          __pgt_q48."n_2"
                        FROM (
                          SELECT
                            __pgt_q49."whole" AS "whole",
                            __pgt_q49."part" AS "part_2",
                            __pgt_q49."n" AS "n_2"
                          FROM "shop"."needs" AS __pgt_q49
                        ) AS __pgt_q48
                        WHERE
                          __pgt_q48."part_2" IS NULL
                          AND EXISTS(
                            SELECT
                              1
                            FROM "__pgt_part_3" AS __pgt_q52
                            WHERE
                              __pgt_q52."part" IS NULL
                          )
                      ) AS __pgt_q47
                      WHERE
                        (
                          __pgt_q47."whole" IS NULL
                        )
                    ) AS __pgt_q46
                  ) AS __pgt_q45
                ) AS __pgt_q44
              ) AS __pgt_q43
            ) AS __pgt_q41
            WHERE
              __pgt_q41."__pgt_image" IN (
                SELECT
                  __pgt_q53."__pgt_image"
                FROM "__pgt_part_2" AS __pgt_q53
              )
            UNION ALL
            SELECT
              CAST(1 AS BIGINT) AS "__pgt_w",
              __pgt_q54."part",
              __pgt_q54."n"
            FROM (
              SELECT
                __pgt_q56.*,
                CAST(ROW(__pgt_q56."part", __pgt_q56."n") AS TEXT) COLLATE "C" AS "__pgt_image"
              FROM (
                SELECT
                  __pgt_q55."part",
                  __pgt_q55."n"
                FROM "shop"."st_0" AS __pgt_q55
                WHERE
                  FALSE
                UNION ALL
                SELECT
                  __pgt_q57."part",
                  __pgt_q57."n"
                FROM (
                  SELECT
                    __pgt_q58."part_6" AS "part",
                    __pgt_q58."?column?" AS "n"
                  FROM (
                    SELECT
                      __pgt_q59."part_5" AS "part_6",
                      (
                        __pgt_q59."n_4" * __pgt_q59."n_5"
                      ) AS "?column?"
                    FROM (
                      SELECT
                        __pgt_q60."part_4",
                        __pgt_q60."n_4",
                        __pgt_q66."whole_2",
                        __pgt_q66."part_5",
                        __pgt_q66."n_5"
                      FROM (
                        SELECT
                          __pgt_q61."part_3_2" AS "part_4",
                          __pgt_q61."n_3_2" AS "n_4"
                        FROM (
                          SELECT
                            __pgt_q62."part" AS "part_3_2",
                            __pgt_q62."n" AS "n_3_2"
                          FROM (
                            SELECT
                              __pgt_q63."part",
                              __pgt_q63."n",
                              __pgt_q63."__pgt_place",
                              __pgt_q63."__pgt_spot"
                            FROM (
                              SELECT
                                __pgt_q64."part",
                                __pgt_q64."n",
                                __pgt_q64.tableoid AS "__pgt_place",
                                __pgt_q64.ctid AS "__pgt_spot"
                              FROM "shop"."st_0" AS __pgt_q64
                            ) AS __pgt_q63
                            WHERE
                              NOT (__pgt_q63."__pgt_place", __pgt_q63."__pgt_spot") IN (
                                SELECT
                                  __pgt_q65."__pgt_place",
                                  __pgt_q65."__pgt_spot"
                                FROM "__pgt_part_2" AS __pgt_q65
                              )
                          ) AS __pgt_q62
                        ) AS __pgt_q61
                      ) AS __pgt_q60
                      CROSS JOIN (
                        SELECT
                          __pgt_q67."whole_2",
                          __pgt_q67."part_5",
                          __pgt_q67."n_5"
                        FROM (
                          SELECT
                            __pgt_q68."whole" AS "whole_2",
                            __pgt_q68."part" AS "part_5",
                            __pgt_q68."n" AS "n_5"
                          FROM "shop"."needs" AS __pgt_q68
                        ) AS __pgt_q67
                        WHERE
                          (
                            __pgt_q67."part_5"
                          ) IN (
                            SELECT
                              __pgt_q69."part"
                            FROM "__pgt_part_3" AS __pgt_q69
                          )
                        UNION ALL
                        SELECT
                          __pgt_q67."whole_2",
                          __pgt_q67."part_5",
                          __pgt_q67."n_5"
                        FROM (
                          SELECT
                            __pgt_q68."whole" AS "whole_2",
                            __pgt_q68."part" AS "part_5",
                            __pgt_q68."n" AS "n_5"
                          FROM "shop"."needs" AS __pgt_q68
                        ) AS __pgt_q67
                        WHERE
                          __pgt_q67."part_5" IS NULL
                          AND EXISTS(
                            SELECT
                              1
                            FROM "__pgt_part_3" AS __pgt_q70
                            WHERE
                              __pgt_q70."part" IS NULL
                          )
                      ) AS __pgt_q66
                      WHERE
                        (
                          __pgt_q66."whole_2" = __pgt_q60."part_4"
                        )
                    ) AS __pgt_q59
                  ) AS __pgt_q58
                ) AS __pgt_q57
              ) AS __pgt_q56
            ) AS __pgt_q54
            WHERE
              __pgt_q54."__pgt_image" IN (
                SELECT
                  __pgt_q71."__pgt_image"
                FROM "__pgt_part_2" AS __pgt_q71
              )
            UNION ALL
            SELECT
              __pgt_q74."__pgt_w",
              __pgt_q74."part",
              __pgt_q74."n"
            FROM (
              SELECT
                CAST((
                  SUM(__pgt_q72."__pgt_w") OVER same
                ) AS BIGINT) AS "__pgt_w",
                ROW_NUMBER() OVER same AS __pgt_nth,
                __pgt_q72."part",
                __pgt_q72."n"
              FROM "__pgt_delta_1" AS __pgt_q72
              WHERE
                NOT __pgt_q72."__pgt_image" IN (
                  SELECT
                    __pgt_q73."__pgt_image"
                  FROM "__pgt_part_2" AS __pgt_q73
                )
                AND (
                  __pgt_q72."__pgt_spot" IS NULL
                  OR NOT (__pgt_q72."__pgt_place", __pgt_q72."__pgt_spot") IN (
                    SELECT
                      __pgt_q75."__pgt_place",
                      __pgt_q75."__pgt_spot"
                    FROM "__pgt_part_2" AS __pgt_q75
                  )
                )
              WINDOW same AS (PARTITION BY __pgt_q72."__pgt_image")
            ) AS __pgt_q74
            WHERE
              __pgt_q74.__pgt_nth = 1 AND __pgt_q74."__pgt_w" > 0
          ) AS __pgt_q85
          UNION ALL
          SELECT
            __pgt_q76."__pgt_w",
            __pgt_q76."part",
            __pgt_q76."n"
          FROM (
            SELECT
              __pgt_q77."__pgt_w",
              __pgt_q77."part_6" AS "part",
              __pgt_q77."?column?" AS "n"
            FROM (
              SELECT
                __pgt_q78."__pgt_w",
                __pgt_q78."part_5" AS "part_6",
                (
                  __pgt_q78."n_4" * __pgt_q78."n_5"
                ) AS "?column?"
              FROM (
                SELECT
                  __pgt_q79."__pgt_w" AS "__pgt_w",
                  __pgt_q79."part_4",
                  __pgt_q79."n_4",
                  __pgt_q83."whole_2",
                  __pgt_q83."part_5",
                  __pgt_q83."n_5"
                FROM (
                  SELECT
                    __pgt_q80."__pgt_w",
                    __pgt_q80."part_3_2" AS "part_4",
                    __pgt_q80."n_3_2" AS "n_4"
                  FROM (
                    SELECT
                      __pgt_q81."__pgt_w",
                      __pgt_q81."part" AS "part_3_2",
                      __pgt_q81."n" AS "n_3_2"
                    FROM (
                      SELECT
                        __pgt_q82."__pgt_w",
                        __pgt_q82."part",
                        __pgt_q82."n"
                      FROM "__pgt_walk" AS __pgt_q82
                    ) AS __pgt_q81
                  ) AS __pgt_q80
                ) AS __pgt_q79
                CROSS JOIN (
                  SELECT
                    __pgt_q84."whole" AS "whole_2",
                    __pgt_q84."part" AS "part_5",
                    __pgt_q84."n" AS "n_5"
                  FROM "shop"."needs" AS __pgt_q84
                ) AS __pgt_q83
                WHERE
                  (
                    __pgt_q83."whole_2" = __pgt_q79."part_4"
                  )
              ) AS __pgt_q78
            ) AS __pgt_q77
          ) AS __pgt_q76
        )
        SELECT
          __pgt_q86."__pgt_w",
          __pgt_q86."part",
          __pgt_q86."n"
        FROM "__pgt_walk" AS __pgt_q86
      ) AS __pgt_q40
    ) AS __pgt_q3
  ) AS __pgt_q2
) AS __pgt_q1
