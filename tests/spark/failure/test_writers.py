"""Writers that commit late and roll back while Spark refreshes; then the content is the query's, to the row."""

from __future__ import annotations

import random
import threading

import psycopg

from airflow_provider_pgtrickle.client import PgTrickle

WRITERS = 8
TRANSACTIONS = 20
BIG = "SELECT id, g, v FROM orders WHERE v > 50"
TOTALS = "SELECT o.g, n.name, count(*) AS n, sum(o.v) AS s FROM orders o JOIN names n USING (g) GROUP BY o.g, n.name"
LARGE = "SELECT name, s FROM totals WHERE s > 1000"


def test_eight_writers_during_refreshes_on_spark_lose_nothing_and_double_nothing(spark, dsn):
    failures: list[BaseException] = []

    def write(seed: int) -> None:
        chance = random.Random(seed)
        try:
            with psycopg.connect(dsn) as conn:
                for number in range(TRANSACTIONS):
                    for _ in range(chance.randint(1, 3)):
                        _change(conn, chance, 10_000 * (seed + 1) + number * 10)
                        # Transactions of different writers overlap, so many begin early and commit late.
                        conn.execute("SELECT pg_sleep(%s)", (chance.random() / 50,))
                    if chance.random() < 0.25:
                        conn.rollback()
                    else:
                        conn.commit()
        except BaseException as error:
            failures.append(error)

    with PgTrickle(dsn, spark, differential_max_change_ratio=0.0) as pt, psycopg.connect(dsn, autocommit=True) as conn:
        pt.install()
        conn.execute("CREATE TABLE orders (id int PRIMARY KEY, g int NOT NULL, v int NOT NULL)")
        conn.execute("CREATE TABLE names (g int PRIMARY KEY, name text NOT NULL)")
        conn.execute("INSERT INTO orders SELECT n, n % 9, n FROM generate_series(1, 300) n")
        conn.execute("INSERT INTO names SELECT n, 'name ' || n FROM generate_series(0, 8) n")
        for name, query in (("big", BIG), ("totals", TOTALS), ("large", LARGE)):
            pt.create_stream_table(name, query)
        threads = [threading.Thread(target=write, args=(seed,)) for seed in range(WRITERS)]
        for thread in threads:
            thread.start()
        actions: set[str] = set()
        while any(thread.is_alive() for thread in threads):
            # Together and apart, as plans change in life.
            for unit in (["big", "totals", "large"], ["totals"], ["big"], ["large"]):
                actions |= {result.action for result in pt.refresh(unit).values()}
            pt.cleanup()
        for thread in threads:
            thread.join()
        pt.refresh(["big", "totals", "large"])
        assert failures == []
        assert "DIFFERENTIAL" in actions
        assert actions <= {"DIFFERENTIAL", "NO_DATA"}
        for name, query in (("big", BIG), ("totals", TOTALS), ("large", LARGE)):
            columns = {"big": "id, g, v", "totals": "g, name, n, s", "large": "name, s"}[name]
            stored = f"SELECT {columns} FROM {name}"
            assert (
                conn.execute(
                    f"(({stored}) EXCEPT ALL ({query})) UNION ALL (({query}) EXCEPT ALL ({stored}))"
                ).fetchall()
                == []
            )


def _change(conn: psycopg.Connection, chance: random.Random, new: int) -> None:
    match chance.randint(0, 3):
        case 0:
            first = new + chance.randint(0, 5)
            conn.execute(
                "INSERT INTO orders SELECT n, n %% 9, 60 FROM generate_series(%s::int, %s::int) n"
                " ON CONFLICT DO NOTHING",
                (first, first + 2),
            )
        case 1:
            # In the order of the key, so that writers wait for each other and never in a circle.
            conn.execute(
                "UPDATE orders SET v = v + 7 WHERE id IN (SELECT id FROM orders WHERE id %% 97 = %s ORDER BY id"
                " FOR UPDATE SKIP LOCKED)",
                (chance.randint(0, 96),),
            )
        case 2:
            conn.execute(
                "DELETE FROM orders WHERE id = (SELECT id FROM orders WHERE id %% 50 = %s ORDER BY id LIMIT 1"
                " FOR UPDATE SKIP LOCKED)",
                (chance.randint(0, 49),),
            )
        case 3:
            conn.execute(
                "UPDATE names SET name = name || '.'"
                " WHERE g = (SELECT g FROM names WHERE g = %s FOR UPDATE SKIP LOCKED)",
                (chance.randint(0, 8),),
            )
