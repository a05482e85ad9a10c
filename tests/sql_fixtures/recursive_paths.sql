-- tables
CREATE TABLE node (id int PRIMARY KEY, parent int, name text);
INSERT INTO node VALUES (1, NULL, 'a'), (2, 1, 'b'), (3, 2, NULL), (4, 1, 'd');

-- query
WITH RECURSIVE r AS (SELECT id, ARRAY[id] AS path, name FROM node WHERE parent IS NULL UNION ALL SELECT n.id, r.path || n.id, n.name FROM node n JOIN r ON n.parent = r.id) SELECT id, array_length(path, 1) AS length, upper(name) AS name FROM r;

-- cycle
INSERT INTO node VALUES (5, 3, 'e'), (6, 5, NULL);

-- cycle
UPDATE node SET parent = 4 WHERE id = 3;

-- cycle
UPDATE node SET name = 'root' WHERE id = 1;
DELETE FROM node WHERE id = 4;

-- delta
WITH "__pgt_window_node" AS NOT MATERIALIZED (
  SELECT
    1 AS "__pgt_w",
    "new_id" AS "id",
    "new_parent" AS "parent",
    "new_name" AS "name"
  FROM "shop"."changes_node"
  WHERE
    action IN ('I', 'U')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
  UNION ALL
  SELECT
    -1 AS "__pgt_w",
    "old_id" AS "id",
    "old_parent" AS "parent",
    "old_name" AS "name"
  FROM "shop"."changes_node"
  WHERE
    action IN ('U', 'D')
    AND xid >= PG_SNAPSHOT_XMIN(CAST('101:101:' AS pg_snapshot))
    AND NOT PG_VISIBLE_IN_SNAPSHOT(xid, CAST('101:101:' AS pg_snapshot))
), "__pgt_delta_1" AS MATERIALIZED (
  SELECT
    __pgt_q6.*,
    CAST(ROW(__pgt_q6."id", __pgt_q6."__pgt_key_2", __pgt_q6."__pgt_key_3") AS TEXT) COLLATE "C" AS "__pgt_image"
  FROM (
    SELECT
      0 AS "__pgt_w",
      __pgt_q5."id",
      __pgt_q5."__pgt_key_2",
      __pgt_q5."__pgt_key_3",
      __pgt_q5.tableoid AS "__pgt_place",
      __pgt_q5.ctid AS "__pgt_spot"
    FROM "shop"."st_0" AS __pgt_q5
    WHERE
      FALSE
    UNION ALL
    SELECT
      __pgt_q7."__pgt_w",
      __pgt_q7."id",
      __pgt_q7."__pgt_key_2",
      __pgt_q7."__pgt_key_3",
      __pgt_q7."__pgt_place",
      __pgt_q7."__pgt_spot"
    FROM (
      SELECT
        __pgt_q8."__pgt_w",
        __pgt_q8."id",
        __pgt_q8."__pgt_key_2",
        __pgt_q8."__pgt_key_3",
        __pgt_q8."__pgt_place",
        __pgt_q8."__pgt_spot"
      FROM (
        SELECT
          __pgt_q9."__pgt_w",
          __pgt_q9."id_3" AS "id",
          __pgt_q9."path_2" AS "__pgt_key_2",
          __pgt_q9."name_3" AS "__pgt_key_3",
          CAST(NULL AS OID) AS "__pgt_place",
          CAST(NULL AS tid) AS "__pgt_spot"
        FROM (
          SELECT
            __pgt_q10."__pgt_w",
            __pgt_q10."id" AS "id_3",
            ARRAY[__pgt_q10."id"] AS "path_2",
            __pgt_q10."name" AS "name_3"
          FROM "__pgt_window_node" AS __pgt_q10
          WHERE
            (
              (
                __pgt_q10."parent" IS NULL
              )
            )
        ) AS __pgt_q9
      ) AS __pgt_q8
      UNION ALL
      SELECT
        __pgt_q11."__pgt_w",
        __pgt_q11."id_6" AS "id",
        __pgt_q11."?column?" AS "__pgt_key_2",
        __pgt_q11."name_6" AS "__pgt_key_3",
        __pgt_q11."__pgt_place",
        __pgt_q11."__pgt_spot"
      FROM (
        SELECT
          __pgt_q12."__pgt_w",
          __pgt_q12."id" AS "id_6",
          (
            __pgt_q13."__pgt_key_2" || __pgt_q12."id"
          ) AS "?column?",
          __pgt_q12."name" AS "name_6",
          __pgt_q13."__pgt_place" AS "__pgt_place",
          __pgt_q13."__pgt_spot" AS "__pgt_spot"
        FROM "__pgt_window_node" AS __pgt_q12
        CROSS JOIN (
          SELECT
            __pgt_q14."id",
            __pgt_q14."__pgt_key_2",
            __pgt_q14."__pgt_key_3",
            __pgt_q14.tableoid AS "__pgt_place",
            __pgt_q14.ctid AS "__pgt_spot"
          FROM "shop"."st_0" AS __pgt_q14
        ) AS __pgt_q13
        WHERE
          (
            __pgt_q12."parent" = __pgt_q13."id"
          )
      ) AS __pgt_q11
    ) AS __pgt_q7
  ) AS __pgt_q6
), "__pgt_part_2" AS MATERIALIZED (
  WITH RECURSIVE "__pgt_walk"("__pgt_place", "__pgt_spot") AS (
    SELECT
      __pgt_q24.tableoid,
      __pgt_q24.ctid
    FROM "__pgt_delta_1" AS __pgt_q4
    JOIN "shop"."st_0" AS __pgt_q24
      ON __pgt_q24."id" = __pgt_q4."id"
      AND CAST(ROW(__pgt_q24."id", __pgt_q24."__pgt_key_2", __pgt_q24."__pgt_key_3") AS TEXT) COLLATE "C" = __pgt_q4."__pgt_image"
    WHERE
      __pgt_q4."__pgt_w" < 0
    UNION
    SELECT
      __pgt_q25.tableoid,
      __pgt_q25.ctid
    FROM (
      SELECT
        __pgt_q17.*,
        CAST(ROW(__pgt_q17."id", __pgt_q17."__pgt_key_2", __pgt_q17."__pgt_key_3") AS TEXT) COLLATE "C" AS "__pgt_image"
      FROM (
        SELECT
          __pgt_q16."id",
          __pgt_q16."__pgt_key_2",
          __pgt_q16."__pgt_key_3"
        FROM "shop"."st_0" AS __pgt_q16
        WHERE
          FALSE
        UNION ALL
        SELECT
          __pgt_q18."id",
          __pgt_q18."__pgt_key_2",
          __pgt_q18."__pgt_key_3"
        FROM (
          SELECT
            __pgt_q19."id_6" AS "id",
            __pgt_q19."?column?" AS "__pgt_key_2",
            __pgt_q19."name_6" AS "__pgt_key_3"
          FROM (
            SELECT
              __pgt_q20."id" AS "id_6",
              (
                __pgt_q21."__pgt_key_2" || __pgt_q20."id"
              ) AS "?column?",
              __pgt_q20."name" AS "name_6"
            FROM "shop"."node" AS __pgt_q20
            CROSS JOIN (
              SELECT
                __pgt_q22."id",
                __pgt_q22."__pgt_key_2",
                __pgt_q22."__pgt_key_3"
              FROM "__pgt_walk" AS __pgt_q23
              JOIN "shop"."st_0" AS __pgt_q22
                ON __pgt_q22.tableoid = __pgt_q23."__pgt_place"
                AND __pgt_q22.ctid = __pgt_q23."__pgt_spot"
            ) AS __pgt_q21
            WHERE
              (
                __pgt_q20."parent" = __pgt_q21."id"
              )
          ) AS __pgt_q19
        ) AS __pgt_q18
      ) AS __pgt_q17
    ) AS __pgt_q15
    JOIN "shop"."st_0" AS __pgt_q25
      ON __pgt_q25."id" = __pgt_q15."id"
      AND CAST(ROW(__pgt_q25."id", __pgt_q25."__pgt_key_2", __pgt_q25."__pgt_key_3") AS TEXT) COLLATE "C" = __pgt_q15."__pgt_image"
  )
  SELECT
    __pgt_q27."id",
    __pgt_q27."__pgt_key_2",
    __pgt_q27."__pgt_key_3",
    __pgt_q27.tableoid AS "__pgt_place",
    __pgt_q27.ctid AS "__pgt_spot",
    CAST(ROW(__pgt_q27."id", __pgt_q27."__pgt_key_2", __pgt_q27."__pgt_key_3") AS TEXT) COLLATE "C" AS "__pgt_image"
  FROM "__pgt_walk" AS __pgt_q26
  JOIN "shop"."st_0" AS __pgt_q27
    ON __pgt_q27.tableoid = __pgt_q26."__pgt_place"
    AND __pgt_q27.ctid = __pgt_q26."__pgt_spot"
), "__pgt_part_3" AS MATERIALIZED (
  SELECT DISTINCT
    __pgt_q38."id" AS "id",
    __pgt_q38."__pgt_key_3" AS "__pgt_key_3"
  FROM "__pgt_part_2" AS __pgt_q38
)
SELECT
  __pgt_q1."__pgt_w",
  __pgt_q1."id_8" AS "id",
  __pgt_q1."length" AS "length",
  __pgt_q1."name_8" AS "name",
  __pgt_q1."path_5" AS "__pgt_key_2",
  __pgt_q1."name_9" AS "__pgt_key_3"
FROM (
  SELECT
    __pgt_q2."__pgt_w",
    __pgt_q2."id" AS "id_8",
    ARRAY_LENGTH(__pgt_q2."path", 1) AS "length",
    UPPER(__pgt_q2."name") AS "name_8",
    __pgt_q2."path" AS "path_5",
    __pgt_q2."name" AS "name_9"
  FROM (
    SELECT
      -1 AS "__pgt_w",
      __pgt_q3."id" AS "id",
      __pgt_q3."__pgt_key_2" AS "path",
      __pgt_q3."__pgt_key_3" AS "name"
    FROM "__pgt_part_2" AS __pgt_q3
    UNION ALL
    SELECT
      __pgt_q28."__pgt_w" AS "__pgt_w",
      __pgt_q28."id" AS "id",
      __pgt_q28."__pgt_key_2" AS "path",
      __pgt_q28."__pgt_key_3" AS "name"
    FROM (
      WITH RECURSIVE "__pgt_walk"("__pgt_w", "id", "__pgt_key_2", "__pgt_key_3") AS (
        SELECT
          __pgt_q63."__pgt_w",
          __pgt_q63."id",
          __pgt_q63."__pgt_key_2",
          __pgt_q63."__pgt_key_3"
        FROM (
          SELECT
            CAST(1 AS BIGINT) AS "__pgt_w",
            __pgt_q29."id",
            __pgt_q29."__pgt_key_2",
            __pgt_q29."__pgt_key_3"
          FROM (
            SELECT
              __pgt_q31.*,
              CAST(ROW(__pgt_q31."id", __pgt_q31."__pgt_key_2", __pgt_q31."__pgt_key_3") AS TEXT) COLLATE "C" AS "__pgt_image"
            FROM (
              SELECT
                __pgt_q30."id",
                __pgt_q30."__pgt_key_2",
                __pgt_q30."__pgt_key_3"
              FROM "shop"."st_0" AS __pgt_q30
              WHERE
                FALSE
              UNION ALL
              SELECT
                __pgt_q32."id",
                __pgt_q32."__pgt_key_2",
                __pgt_q32."__pgt_key_3"
              FROM (
                SELECT
                  __pgt_q33."id_3" AS "id",
                  __pgt_q33."path_2" AS "__pgt_key_2",
                  __pgt_q33."name_3" AS "__pgt_key_3"
                FROM (
                  SELECT
                    __pgt_q34."id_2" AS "id_3",
                    ARRAY[__pgt_q34."id_2"] AS "path_2",
                    __pgt_q34."name_2" AS "name_3"
                  FROM (
                    SELECT
                      __pgt_q35."id_2",
                      __pgt_q35."parent",
                      __pgt_q35."name_2"
                    FROM (
                      SELECT
                        __pgt_q36."id" AS "id_2",
                        __pgt_q36."parent" AS "parent",
                        __pgt_q36."name" AS "name_2"
                      FROM "shop"."node" AS __pgt_q36
                    ) AS __pgt_q35
                    WHERE
                      (
                        __pgt_q35."id_2"
                      ) IN (
                        SELECT
                          __pgt_q37."id"
                        FROM "__pgt_part_3" AS __pgt_q37
                      )
                  ) AS __pgt_q34
                  WHERE
                    (
                      (
                        __pgt_q34."parent" IS NULL
                      )
                    )
                ) AS __pgt_q33
              ) AS __pgt_q32
            ) AS __pgt_q31
          ) AS __pgt_q29
          WHERE
            __pgt_q29."__pgt_image" IN (
              SELECT
                __pgt_q39."__pgt_image"
              FROM "__pgt_part_2" AS __pgt_q39
            )
          UNION ALL
          SELECT
            CAST(1 AS BIGINT) AS "__pgt_w",
            __pgt_q40."id",
            __pgt_q40."__pgt_key_2",
            __pgt_q40."__pgt_key_3"
          FROM (
            SELECT
              __pgt_q42.*,
              CAST(ROW(__pgt_q42."id", __pgt_q42."__pgt_key_2", __pgt_q42."__pgt_key_3") AS TEXT) COLLATE "C" AS "__pgt_image"
            FROM (
              SELECT
                __pgt_q41."id",
                __pgt_q41."__pgt_key_2",
                __pgt_q41."__pgt_key_3"
              FROM "shop"."st_0" AS __pgt_q41
              WHERE
                FALSE
              UNION ALL
              SELECT
                __pgt_q43."id",
                __pgt_q43."__pgt_key_2",
                __pgt_q43."__pgt_key_3"
              FROM (
                SELECT
                  __pgt_q44."id_6" AS "id",
                  __pgt_q44."?column?" AS "__pgt_key_2",
                  __pgt_q44."name_6" AS "__pgt_key_3"
                FROM (
                  SELECT
                    __pgt_q45."id_4" AS "id_6",
                    (
                      __pgt_q49."__pgt_key_2" || __pgt_q45."id_4"
                    ) AS "?column?",
                    __pgt_q45."name_4" AS "name_6"
                  FROM (
                    SELECT
                      __pgt_q46."id_4",
                      __pgt_q46."parent_2",
                      __pgt_q46."name_4"
                    FROM (
                      SELECT
                        __pgt_q47."id" AS "id_4",
                        __pgt_q47."parent" AS "parent_2",
                        __pgt_q47."name" AS "name_4"
                      FROM "shop"."node" AS __pgt_q47
                    ) AS __pgt_q46
                    WHERE
                      (
                        __pgt_q46."id_4"
                      ) IN (
                        SELECT
                          __pgt_q48."id"
                        FROM "__pgt_part_3" AS __pgt_q48
                      )
                  ) AS __pgt_q45
                  CROSS JOIN (
                    SELECT
                      __pgt_q50."id",
                      __pgt_q50."__pgt_key_2",
                      __pgt_q50."__pgt_key_3",
                      __pgt_q50."__pgt_place",
                      __pgt_q50."__pgt_spot"
                    FROM (
                      SELECT
                        __pgt_q51."id",
                        __pgt_q51."__pgt_key_2",
                        __pgt_q51."__pgt_key_3",
                        __pgt_q51.tableoid AS "__pgt_place",
                        __pgt_q51.ctid AS "__pgt_spot"
                      FROM "shop"."st_0" AS __pgt_q51
                    ) AS __pgt_q50
                    WHERE
                      NOT (__pgt_q50."__pgt_place", __pgt_q50."__pgt_spot") IN (
                        SELECT
                          __pgt_q52."__pgt_place",
                          __pgt_q52."__pgt_spot"
                        FROM "__pgt_part_2" AS __pgt_q52
                      )
                  ) AS __pgt_q49
                  WHERE
                    (
                      __pgt_q45."parent_2" = __pgt_q49."id"
                    )
                ) AS __pgt_q44
              ) AS __pgt_q43
            ) AS __pgt_q42
          ) AS __pgt_q40
          WHERE
            __pgt_q40."__pgt_image" IN (
              SELECT
                __pgt_q53."__pgt_image"
              FROM "__pgt_part_2" AS __pgt_q53
            )
          UNION ALL
          SELECT
            __pgt_q56."__pgt_w",
            __pgt_q56."id",
            __pgt_q56."__pgt_key_2",
            __pgt_q56."__pgt_key_3"
          FROM (
            SELECT
              CAST((
                SUM(__pgt_q54."__pgt_w") OVER same
              ) AS BIGINT) AS "__pgt_w",
              ROW_NUMBER() OVER same AS __pgt_nth,
              __pgt_q54."id",
              __pgt_q54."__pgt_key_2",
              __pgt_q54."__pgt_key_3"
            FROM "__pgt_delta_1" AS __pgt_q54
            WHERE
              NOT __pgt_q54."__pgt_image" IN (
                SELECT
                  __pgt_q55."__pgt_image"
                FROM "__pgt_part_2" AS __pgt_q55
              )
              AND (
                __pgt_q54."__pgt_spot" IS NULL
                OR NOT (__pgt_q54."__pgt_place", __pgt_q54."__pgt_spot") IN (
                  SELECT
                    __pgt_q57."__pgt_place",
                    __pgt_q57."__pgt_spot"
                  FROM "__pgt_part_2" AS __pgt_q57
                )
              )
            WINDOW same AS (PARTITION BY __pgt_q54."__pgt_image")
          ) AS __pgt_q56
          WHERE
            __pgt_q56.__pgt_nth = 1 AND __pgt_q56."__pgt_w" > 0
        ) AS __pgt_q63
        UNION ALL
        SELECT
          __pgt_q58."__pgt_w",
          __pgt_q58."id",
          __pgt_q58."__pgt_key_2",
          __pgt_q58."__pgt_key_3"
        FROM (
          SELECT
            __pgt_q59."__pgt_w",
            __pgt_q59."id_6" AS "id",
            __pgt_q59."?column?" AS "__pgt_key_2",
            __pgt_q59."name_6" AS "__pgt_key_3"
          FROM (
            SELECT
              __pgt_q61."__pgt_w",
              __pgt_q60."id" AS "id_6",
              (
                __pgt_q61."__pgt_key_2" || __pgt_q60."id"
              ) AS "?column?",
              __pgt_q60."name" AS "name_6"
            FROM "shop"."node" AS __pgt_q60
            CROSS JOIN (
              SELECT
                __pgt_q62."__pgt_w",
                __pgt_q62."id",
                __pgt_q62."__pgt_key_2",
                __pgt_q62."__pgt_key_3"
              FROM "__pgt_walk" AS __pgt_q62
            ) AS __pgt_q61
            WHERE
              (
                __pgt_q60."parent" = __pgt_q61."id"
              )
          ) AS __pgt_q59
        ) AS __pgt_q58
      )
      SELECT
        __pgt_q64."__pgt_w",
        __pgt_q64."id",
        __pgt_q64."__pgt_key_2",
        __pgt_q64."__pgt_key_3"
      FROM "__pgt_walk" AS __pgt_q64
    ) AS __pgt_q28
  ) AS __pgt_q2
) AS __pgt_q1
