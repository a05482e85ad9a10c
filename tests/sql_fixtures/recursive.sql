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
SELECT
  1 AS "__pgt_w",
  __pgt_q1."id",
  __pgt_q1."depth"
FROM (
  SELECT
    "id",
    "depth"
  FROM (
    WITH RECURSIVE tree AS (
      SELECT
        node.id,
        0 AS depth
      FROM shop.node
      WHERE
        (
          node.parent IS NULL
        )
      UNION ALL
      SELECT
        n.id,
        (
          t.depth + 1
        )
      FROM (
        shop.node AS n
          JOIN tree AS t
            ON (
              (
                n.parent = t.id
              )
            )
      )
    )
    SELECT
      "tree"."id",
      "tree"."depth"
    FROM "tree"
  ) AS __pgt_q2("id", "depth")
) AS __pgt_q1
UNION ALL
SELECT
  -1 AS "__pgt_w",
  __pgt_q3."id",
  __pgt_q3."depth"
FROM "shop"."st_0" AS __pgt_q3
