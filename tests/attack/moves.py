"""What may happen to a database: statements of writers and owners, refreshes, and the gaps in which they meet.

A history is a flat list of steps, each one for an actor: `A` and `B` are sessions of the owner, `R` and `S` refresh.
A refresh may pause before the n-th statement that it sends; the steps that follow in the list happen in that gap.
Any step can be left out and the rest still means something, which is all that shrinking needs.

In a statement `<<…>>` stands for a name that only the database knows: see `actors`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.attack.worlds import WORLDS, World

__all__ = ["Declare", "Forget", "History", "Kill", "Refresh", "Resume", "Say", "Step", "history"]


@dataclass(frozen=True)
class Say:
    """One statement in an owner's session."""

    actor: str
    sql: str


@dataclass(frozen=True)
class Refresh:
    """A refresh, which stops in the gaps named until it is resumed."""

    actor: str
    names: tuple[str, ...]
    force_full: bool = False
    pauses: tuple[int, ...] = ()


@dataclass(frozen=True)
class Declare:
    """Drop, create or alter a stream table; it has gaps, too."""

    actor: str
    what: str
    """`drop`, `create`, `replace`, or a refresh mode to alter it to."""
    name: str
    pauses: tuple[int, ...] = ()


@dataclass(frozen=True)
class Resume:
    """Let an actor go on that stands in a gap."""

    actor: str


@dataclass(frozen=True)
class Kill:
    """End the sessions of an actor, as a crash of its machine would."""

    actor: str


@dataclass(frozen=True)
class Forget:
    """Forget what is known of queries, as a process that has just begun: it looks at the sources once more."""

    actor: str


Step = Say | Refresh | Declare | Resume | Kill | Forget
History = tuple[Step, ...]
Chance = random.Random
Move = Callable[[Chance], list[str]]

#: A refresh of one table sends some forty statements, a create some more.
_GAPS = 60


def history(world: World, seed: int) -> History:
    """The history of that number; the same each time."""
    chance = Chance(f"{world.name} {seed}")
    moves = _MOVES[world.name]
    scripts: list[list[Step]] = []
    for actor in ("A", "B")[: chance.choice((1, 1, 2, 2))]:
        script: list[Step] = []
        for _ in range(chance.randint(1, 5)):
            script += [Say(actor, said) for said in _move(chance, moves)]
        scripts.append(script)
    for actor in ("R", "S")[: chance.choice((1, 1, 1, 2))]:
        scripts.append(_refreshes(chance, world, actor))
    # A refresh with nothing to do has few gaps.
    before = moves[0][1](chance) + moves[0][1](chance) if chance.random() < 0.7 else []
    return (*(Say("A", said) for said in before), *_shuffled(chance, scripts))


def _shuffled(chance: Chance, scripts: Sequence[list[Step]]) -> list[Step]:
    """All scripts into each other, each in its order."""
    turns = [number for number, script in enumerate(scripts) for _ in script]
    chance.shuffle(turns)
    left = [iter(script) for script in scripts]
    return [next(left[turn]) for turn in turns]


def _refreshes(chance: Chance, world: World, actor: str) -> list[Step]:
    steps: list[Step] = []
    names = list(world.stream_tables)
    if chance.random() < 0.25:
        steps.append(Forget(actor))
    for _ in range(chance.randint(1, 3)):
        pauses = tuple(sorted(chance.sample(range(4, _GAPS), chance.choice((0, 1, 1, 2)))))
        kind = chance.random()
        if kind < 0.08:
            name = chance.choice(names)
            what = chance.choice(("drop", "create", "replace", "FULL", "AUTO", "DIFFERENTIAL"))
            steps.append(Declare(actor, what, name, pauses))
        else:
            chosen = tuple(sorted(chance.sample(names, chance.choice((1, 1, 1, 2, len(names))))))
            steps.append(Refresh(actor, chosen, kind > 0.93, pauses))
        # A gap lasts for some steps of others: the shuffle puts them between.
        steps += [Resume(actor)] * len(pauses)
        if chance.random() < 0.05:
            steps.append(Kill(actor))
    return steps


def _move(chance: Chance, moves: Sequence[tuple[int, Move]]) -> list[str]:
    move = chance.choices([move for _, move in moves], [weight for weight, _ in moves])[0]
    return _transacted(chance, move(chance))


def _transacted(chance: Chance, said: list[str]) -> list[str]:
    """Mostly as it is, else in a transaction that ends well, badly, partly, or in two phases."""
    outside = ("BEGIN", "VACUUM", "CONCURRENTLY", "CLUSTER", "REINDEX DATABASE", "SET session_replication_role")
    if any(word in statement for statement in said for word in outside):
        return said
    level = chance.choice(("", "", " ISOLATION LEVEL REPEATABLE READ", " ISOLATION LEVEL SERIALIZABLE"))
    begin = f"BEGIN{level}"
    match chance.choices(range(6), (60, 20, 6, 6, 4, 4))[0]:
        case 1:
            return [begin, *said, "COMMIT"]
        case 2:
            return [begin, *said, "ROLLBACK"]
        case 3:
            return [begin, "SAVEPOINT here", *said, "ROLLBACK TO here", "COMMIT"]
        case 4:
            return [begin, "SAVEPOINT here", *said, "RELEASE here", "COMMIT"]
        case 5:
            name = f"<<db>>_{chance.randint(1, 99)}"
            end = chance.choice(("COMMIT", "COMMIT", "ROLLBACK"))
            return [begin, *said, f"PREPARE TRANSACTION '{name}'", f"{end} PREPARED '{name}'"]
    return said


# Writers


def _numbers(chance: Chance) -> str:
    """A condition on `id`."""
    first = chance.randint(1, 16)
    return chance.choice(
        (f"id = {first}", f"id < {first}", f"id BETWEEN {first} AND {first + 3}", f"id % 3 = {first % 3}")
    )


def _writes_t(chance: Chance) -> list[str]:
    new, g, v = chance.randint(1, 40), chance.randint(0, 4), chance.randint(0, 200)
    return chance.choice(
        (
            [f"INSERT INTO t (id, g, v) VALUES ({new + 40}, {g}, {v}), ({new + 90}, {g}, {v})"],
            [f"INSERT INTO t (id, g, v) VALUES ({new}, {g}, {v}) ON CONFLICT (id) DO UPDATE SET v = excluded.v"],
            [f"INSERT INTO t (id, g, v) VALUES ({new}, {g}, {v}) ON CONFLICT DO NOTHING"],
            [f"UPDATE t SET v = v + {g + 1} WHERE {_numbers(chance)}"],
            [f"UPDATE t SET g = {g} WHERE {_numbers(chance)}"],
            [f"UPDATE t SET id = id + 200 WHERE {_numbers(chance)}"],
            [f"DELETE FROM t WHERE {_numbers(chance)}"],
            [
                f"MERGE INTO t USING (VALUES ({new}, {v}), ({new + 60}, {v})) AS s (id, v) ON t.id = s.id"
                f" WHEN MATCHED AND s.v > 150 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v"
                f" WHEN NOT MATCHED THEN INSERT (id, g, v) VALUES (s.id, {g}, s.v)"
            ],
            [f"COPY t (id, g, v) FROM STDIN WITH (FORMAT csv);\n{new + 300},{g},{v}\n{new + 350},{g},{v}\n"],
            [
                f"WITH gone AS (DELETE FROM t WHERE {_numbers(chance)} RETURNING *)"
                f" INSERT INTO t (id, g, v) SELECT id + 500, g, v + 1 FROM gone"
            ],
            [f"UPDATE t SET v = t.v + s.v FROM t AS s WHERE s.id = {new % 12} AND t.g = s.g"],
        )
    )


def _writes_u(chance: Chance) -> list[str]:
    g = chance.randint(0, 5)
    return chance.choice(
        (
            [f"UPDATE u SET name = 'new {chance.randint(1, 99)}' WHERE g = {g}"],
            [f"INSERT INTO u (g, name) VALUES ({g}, 'put') ON CONFLICT (g) DO UPDATE SET name = u.name || '+'"],
            [f"DELETE FROM u WHERE g = {g}"],
            [f"UPDATE u SET g = g + 10 WHERE g = {g}"],
        )
    )


def _writes_k(chance: Chance) -> list[str]:
    a = chance.randint(1, 4)
    return chance.choice(
        (
            [f"INSERT INTO k (a, b) VALUES ({a}, 'x'), ({a}, NULL)"],
            [f"UPDATE k SET b = 'b{a}' WHERE a = {a}"],
            [f"DELETE FROM k WHERE ctid = (SELECT min(ctid) FROM k WHERE a = {a})"],
            [f"DELETE FROM k WHERE a = {a}"],
            [f"INSERT INTO k (a, b) SELECT a, b FROM k WHERE a = {a}"],
        )
    )


def _writes_c(chance: Chance) -> list[str]:
    c, t = chance.randint(1, 20), chance.randint(1, 12)
    return chance.choice(
        (
            [f"INSERT INTO c (id, t_id) VALUES ({c + 10}, {t}) ON CONFLICT DO NOTHING"],
            [f"UPDATE c SET t_id = {t} WHERE id = {c}"],
            [f"DELETE FROM t WHERE id = {t}"],
            [f"UPDATE t SET id = id + 700 WHERE id = {t}"],
        )
    )


def _writes_p(chance: Chance) -> list[str]:
    new, part, v = chance.randint(1, 150), chance.randint(1, 3), chance.randint(0, 50)
    leaf = chance.choice(("p", "p", "p1", "p2", "p2a"))
    return chance.choice(
        (
            [f"INSERT INTO p (id, part, v) VALUES ({new}, {min(part, 2)}, {v}) ON CONFLICT (id, part) DO NOTHING"],
            [f"INSERT INTO p (id, part, v) VALUES ({new + 20}, {part}, {v})"],
            [f"UPDATE {leaf} SET v = v + 1 WHERE {_numbers(chance)}"],
            [f"UPDATE p SET part = {part} WHERE {_numbers(chance)}"],
            [f"UPDATE p2 SET id = id + 100 WHERE {_numbers(chance)}"],
            [f"DELETE FROM {leaf} WHERE {_numbers(chance)}"],
            [
                f"MERGE INTO p USING (VALUES ({new}, 1), ({new}, 2)) AS s (id, part) ON (p.id, p.part) = (s.id, s.part)"
                f" WHEN MATCHED THEN UPDATE SET v = {v} WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.part, {v})"
            ],
            [f"COPY p (id, part, v) FROM STDIN WITH (FORMAT csv);\n{new + 400},1,{v}\n{new + 401},2,{v}\n"],
            [f"TRUNCATE {leaf}"],
        )
    )


def _writes_h(chance: Chance) -> list[str]:
    new, v = chance.randint(20, 60), chance.randint(0, 9)
    named = chance.choice(("h", "h", "h1", "ONLY h"))
    return chance.choice(
        (
            [f"INSERT INTO {named.removeprefix('ONLY ')} (id, v) VALUES ({new}, {v})"],
            [f"UPDATE {named} SET v = v + 1 WHERE {_numbers(chance)}"],
            [f"DELETE FROM {named} WHERE {_numbers(chance)}"],
            [f"TRUNCATE {named}"],
        )
    )


def _writes_w(chance: Chance) -> list[str]:
    new, g = chance.randint(13, 60), chance.randint(0, 3)
    mood = chance.choice(("sad", "ok", "glad"))
    return chance.choice(
        (
            [f"INSERT INTO w (id, g, m, d, r, v) VALUES ({new}, {g}, '{mood}', {g}, ROW({g}, 'n'), {new})"],
            [f"UPDATE w SET m = '{mood}' WHERE {_numbers(chance)}"],
            [f"UPDATE w SET v = v + 1, d = d + 1 WHERE {_numbers(chance)}"],
            [f"UPDATE w SET r.a = {g} WHERE {_numbers(chance)}"],
            [f"UPDATE w SET g = {g} WHERE {_numbers(chance)}"],
            [f"DELETE FROM w WHERE {_numbers(chance)}"],
        )
    )


def _emptied(table: str, columns: str, refilled: str) -> Move:
    """The commonest ETL there is, and its parts."""

    def move(chance: Chance) -> list[str]:
        fill = f"INSERT INTO {table} ({columns}) {refilled}"
        return chance.choice(
            (
                ["BEGIN", f"TRUNCATE {table} CASCADE", fill, "COMMIT"],
                [f"TRUNCATE {table} CASCADE"],
                ["BEGIN", f"DELETE FROM {table}", fill, "COMMIT"],
                [f"TRUNCATE {table} RESTART IDENTITY CASCADE", fill],
                ["BEGIN", f"TRUNCATE {table} CASCADE", "ROLLBACK"],
            )
        )

    return move


def _as_replica(writes: Move) -> Move:
    """As logical replication writes; the role was given the right to."""

    def move(chance: Chance) -> list[str]:
        role = chance.choice(("replica", "replica", "local"))
        return [
            f"SET session_replication_role = {role}",
            *writes(chance),
            *writes(chance),
            "SET session_replication_role = origin",
        ]

    return move


# Owners: ALTER TABLE in every form that PostgreSQL lists


def _altered(table: str, column: str, kind: str = "int") -> Move:
    """What leaves the query's words true. `column` is one that the queries read."""
    other = {"int": "bigint", "text": "varchar(80)"}[kind]
    using = {"int": f"{column} + 1", "text": f"upper({column})"}[kind]
    t, c = table, column

    def move(chance: Chance) -> list[str]:
        extra = f"x{chance.randint(1, 3)}"
        return chance.choice(
            (
                [f"ALTER TABLE {t} ADD COLUMN {extra} int"],
                [f"ALTER TABLE {t} ADD COLUMN {extra} int DEFAULT 7"],
                [f"ALTER TABLE {t} ADD COLUMN {extra} uuid DEFAULT gen_random_uuid()"],
                [f"ALTER TABLE {t} ADD COLUMN {extra} int GENERATED ALWAYS AS IDENTITY"],
                [f"ALTER TABLE {t} ADD COLUMN {extra} text GENERATED ALWAYS AS ({c}::text) STORED"],
                [f"ALTER TABLE {t} DROP COLUMN {extra}"],
                [f"ALTER TABLE {t} DROP COLUMN {c}, ADD COLUMN {c} {kind}"],
                [f"ALTER TABLE {t} DROP COLUMN {c}", f"ALTER TABLE {t} ADD COLUMN {c} {kind}"],
                [f"ALTER TABLE {t} ALTER COLUMN {c} TYPE {other}"],
                [f"ALTER TABLE {t} ALTER COLUMN {c} TYPE {kind} USING {using}"],
                [f"ALTER TABLE {t} ALTER COLUMN {c} TYPE {other}", f"ALTER TABLE {t} ALTER COLUMN {c} TYPE {kind}"],
                [f"ALTER TABLE {t} ALTER COLUMN {c} SET DEFAULT {'5' if kind == 'int' else repr('five')}"],
                [f"ALTER TABLE {t} ALTER COLUMN {c} DROP DEFAULT"],
                [f"ALTER TABLE {t} ALTER COLUMN {c} SET NOT NULL", f"ALTER TABLE {t} ALTER COLUMN {c} DROP NOT NULL"],
                [f"ALTER TABLE {t} ALTER COLUMN {c} SET STATISTICS 10"],
                [f"ALTER TABLE {t} ALTER COLUMN {c} SET STORAGE PLAIN"],
                [f"ALTER TABLE {t} ALTER COLUMN {c} SET (n_distinct = 5)"],
                [f"ALTER TABLE {t} RENAME COLUMN {c} TO y", f"ALTER TABLE {t} RENAME COLUMN y TO {c}"],
                [f"ALTER TABLE {t} RENAME COLUMN {c} TO y", f"ALTER TABLE {t} ADD COLUMN {c} {kind}"],
                [f"ALTER TABLE {t} SET SCHEMA other", f"ALTER TABLE other.{t} SET SCHEMA public"],
                [f"ALTER TABLE {t} RENAME TO {t}_away", f"ALTER TABLE {t}_away RENAME TO {t}"],
                [f"ALTER TABLE {t} SET UNLOGGED", f"ALTER TABLE {t} SET LOGGED"],
                [f"ALTER TABLE {t} SET UNLOGGED"],
                [f"ALTER TABLE {t} REPLICA IDENTITY {chance.choice(('FULL', 'NOTHING', 'DEFAULT'))}"],
                [f"ALTER TABLE {t} OWNER TO current_user"],
                [f"ALTER TABLE {t} SET (fillfactor = 70)", f"ALTER TABLE {t} RESET (fillfactor)"],
                [f"ALTER TABLE {t} SET ACCESS METHOD heap"],
                [f"ALTER TABLE {t} SET TABLESPACE pg_default"],
                [f"ALTER TABLE {t} ADD CONSTRAINT positive CHECK ({c} IS NOT NULL) NOT VALID"],
                [f"ALTER TABLE {t} VALIDATE CONSTRAINT positive", f"ALTER TABLE {t} DROP CONSTRAINT positive"],
                [f"CREATE INDEX ON {t} ({c})", f"ANALYZE {t}"],
                [f"CREATE INDEX CONCURRENTLY ON {t} ({c})"],
                [f"ALTER TABLE {t} ENABLE ROW LEVEL SECURITY", f"CREATE POLICY odd ON {t} USING (true)"],
                [f"ALTER TABLE {t} FORCE ROW LEVEL SECURITY"],
                [f"ALTER TABLE {t} NO FORCE ROW LEVEL SECURITY", f"ALTER TABLE {t} DISABLE ROW LEVEL SECURITY"],
                [f"CREATE RULE idle AS ON DELETE TO {t} DO INSTEAD NOTHING"],
                [f"ALTER TABLE {t} DISABLE RULE idle", f"DROP RULE idle ON {t}"],
                [f"ALTER TABLE {t} ENABLE {chance.choice(('ALWAYS', 'REPLICA'))} RULE idle"],
                [f"CREATE TYPE like_{t} AS (id int)", f"ALTER TABLE {t} OF like_{t}", f"ALTER TABLE {t} NOT OF"],
                [f"ALTER TABLE {t} ALTER COLUMN {extra} DROP EXPRESSION"],
                [f"ALTER TABLE {t} ALTER COLUMN {extra} DROP IDENTITY IF EXISTS"],
                [f"VACUUM FULL {t}"],
                [f"VACUUM (FREEZE) {t}"],
                [f"REINDEX TABLE {t}"],
                [f"GRANT SELECT ON {t} TO PUBLIC", f"COMMENT ON TABLE {t} IS 'seen'"],
                [f"DROP TABLE {t} CASCADE"],
            )
        )

    return move


def _rekeyed(table: str, key: str) -> Move:
    def move(chance: Chance) -> list[str]:
        t = table
        return chance.choice(
            (
                [f"CLUSTER {t} USING {t}_pkey"],
                [f"ALTER TABLE {t} DROP CONSTRAINT {t}_pkey CASCADE"],
                [f"ALTER TABLE {t} DROP CONSTRAINT {t}_pkey CASCADE", f"ALTER TABLE {t} ADD PRIMARY KEY ({key})"],
                [
                    f"ALTER TABLE {t} ADD CONSTRAINT {t}_again UNIQUE ({key})",
                    f"ALTER TABLE {t} DROP CONSTRAINT {t}_again",
                ],
                [f"ALTER TABLE {t} ALTER COLUMN {key} TYPE bigint"],
                [f"ALTER TABLE {t} ALTER COLUMN {key} ADD GENERATED BY DEFAULT AS IDENTITY"],
                [f"ALTER TABLE {t} CLUSTER ON {t}_pkey", f"ALTER TABLE {t} SET WITHOUT CLUSTER"],
            )
        )

    return move


def _rewritten(table: str, column: str, columns: str, refilled: str) -> Move:
    """In a transaction that others meet: what an older snapshot sees as an empty table."""
    t, c = table, column

    def move(chance: Chance) -> list[str]:
        fill = f"INSERT INTO {t} ({columns}) {refilled}"
        done = chance.choice(
            (
                [f"ALTER TABLE {t} ADD COLUMN z{chance.randint(1, 9)} uuid DEFAULT gen_random_uuid()"],
                [f"TRUNCATE {t} CASCADE", fill],
                [f"ALTER TABLE {t} SET UNLOGGED"],
                [f"ALTER TABLE {t} ALTER COLUMN {c} TYPE text USING {c}::text"],
                [f"DELETE FROM {t}", fill, f"CREATE INDEX ON {t} ({c})"],
            )
        )
        return ["BEGIN", *done, "COMMIT"]

    return move


def _swapped(table: str, columns: str, refilled: str) -> Move:
    """Another table under the same name."""

    def move(chance: Chance) -> list[str]:
        t, made = table, f"CREATE TABLE {table}_new (LIKE {table} INCLUDING ALL)"
        fill = f"INSERT INTO {t}_new ({columns}) {refilled}"
        put = f"ALTER TABLE {t}_new RENAME TO {t}"
        return chance.choice(
            (
                [made, fill, "BEGIN", f"ALTER TABLE {t} RENAME TO {t}_old", put, "COMMIT"],
                [made, fill, "BEGIN", f"DROP TABLE {t} CASCADE", put, "COMMIT"],
                [made, f"ALTER TABLE {t} RENAME TO {t}_old", put],
                [made, f"DROP TABLE {t} CASCADE", put, f"INSERT INTO {t} ({columns}) {refilled}"],
                ["BEGIN", f"ALTER TABLE {t} RENAME TO {t}_x", f"ALTER TABLE {t}_x RENAME TO {t}", "COMMIT"],
            )
        )

    return move


# Owners: triggers, theirs and ours


def _triggers(table: str, writes: Move) -> Move:
    """Off and on again, with a write between them or not; one of ours gone, or another in its place."""

    def move(chance: Chance) -> list[str]:
        t = table
        between = writes(chance) if chance.random() < 0.6 else []
        kind = chance.choice(("insert", "update", "delete", "truncate", "replica", "routing", "row"))
        one = f"<<trigger {t} {kind}>>"
        return chance.choice(
            (
                [f"ALTER TABLE {t} DISABLE TRIGGER USER", *between, f"ALTER TABLE {t} ENABLE TRIGGER USER"],
                [f"ALTER TABLE {t} DISABLE TRIGGER USER", *between],
                [f"ALTER TABLE {t} ENABLE TRIGGER USER"],
                [f"ALTER TABLE {t} DISABLE TRIGGER ALL", *between, f"ALTER TABLE {t} ENABLE TRIGGER ALL"],
                [f"ALTER TABLE {t} ENABLE TRIGGER ALL"],
                [f"ALTER TABLE {t} DISABLE TRIGGER {one}", *between],
                [f"ALTER TABLE {t} DISABLE TRIGGER {one}", *between, f"ALTER TABLE {t} ENABLE TRIGGER {one}"],
                [f"ALTER TABLE {t} ENABLE REPLICA TRIGGER {one}", *between],
                [f"ALTER TABLE {t} ENABLE ALWAYS TRIGGER {one}", *between],
                [f"DROP TRIGGER {one} ON {t}", *between],
                [f"ALTER TRIGGER {one} ON {t} RENAME TO mine", *between],
                [
                    "BEGIN",
                    f"ALTER TABLE {t} DISABLE TRIGGER USER",
                    *between,
                    f"ALTER TABLE {t} ENABLE TRIGGER USER",
                    "COMMIT",
                ],
                ["BEGIN", f"ALTER TABLE {t} DISABLE TRIGGER USER", "ROLLBACK", *between],
                [
                    "CREATE OR REPLACE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
                    f"CREATE OR REPLACE TRIGGER {one} AFTER INSERT OR UPDATE ON {t} EXECUTE FUNCTION nothing()",
                    *between,
                ],
                [
                    "CREATE OR REPLACE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS"
                    " 'BEGIN IF new.v % 2 = 0 THEN RETURN NULL; END IF; RETURN new; END'",
                    f"CREATE OR REPLACE TRIGGER theirs BEFORE UPDATE ON {t} FOR EACH ROW EXECUTE FUNCTION skip()",
                    *between,
                ],
            )
        )

    return move


def _ours(table: str, writes: Move) -> Move:
    """Buffers and capture functions, which belong to the same owner."""

    def move(chance: Chance) -> list[str]:
        buffer, function = f"<<buffer {table}>>", f"<<function {table}>>"
        nothing = "RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
        after = writes(chance) if chance.random() < 0.6 else []
        return chance.choice(
            (
                [*after, f"DROP TABLE {buffer}"],
                [f"DROP TABLE {buffer}", *after],
                [*after, f"TRUNCATE {buffer}"],
                [f"DROP FUNCTION {function} CASCADE", *after],
                [f"CREATE OR REPLACE FUNCTION {function} {nothing}", *after],
                [
                    f"ALTER FUNCTION {function} SECURITY INVOKER",
                    *after,
                ],
                [f"VACUUM FULL {buffer}", *after],
                [f"ALTER TABLE {buffer} SET LOGGED"],
            )
        )

    return move


def _kept(table: str, column: str) -> Move:
    """The stream table's own table; nobody but a refresh writes to it, and the owner may do the rest."""
    t, c = table, column

    def move(chance: Chance) -> list[str]:
        return chance.choice(
            (
                [f"ALTER TABLE {t} DROP COLUMN {c}"],
                [f"ALTER TABLE {t} ADD COLUMN mine int DEFAULT 3"],
                [f"ALTER TABLE {t} ALTER COLUMN {c} TYPE text"],
                [f"ALTER TABLE {t} ALTER COLUMN {c} TYPE numeric USING {c} + 1"],
                [f"ALTER TABLE {t} RENAME COLUMN {c} TO mine"],
                [f"ALTER TABLE {t} RENAME TO {t}_away", f"ALTER TABLE {t}_away RENAME TO {t}"],
                [f"ALTER TABLE {t} SET SCHEMA other", f"ALTER TABLE other.{t} SET SCHEMA public"],
                [f"ALTER TABLE {t} SET UNLOGGED"],
                [f"ALTER TABLE {t} DISABLE TRIGGER USER", f"ALTER TABLE {t} ENABLE TRIGGER USER"],
                [f"ALTER TABLE {t} ENABLE TRIGGER ALL"],
                [f"VACUUM FULL {t}"],
                [f"CREATE INDEX ON {t} ({c})"],
                [f"CREATE UNIQUE INDEX only_one ON {t} ({c})"],
                [f"ALTER TABLE {t} ADD CONSTRAINT few CHECK ({c} IS NULL)"],
                [f"ALTER TABLE {t} ENABLE ROW LEVEL SECURITY"],
                [f"DROP TABLE {t}"],
                [f"DROP TABLE <<part {t}>>"],
                [f"TRUNCATE <<part {t}>>"],
                [f"UPDATE {t} SET {c} = NULL"],
                [f"TRUNCATE {t}"],
            )
        )

    return move


# Owners: trees


def _partitions(chance: Chance) -> list[str]:
    made = "CREATE TABLE p3 PARTITION OF p FOR VALUES IN (3)"
    fill = "INSERT INTO p (id, part, v) VALUES (701, 3, 70), (702, 3, 71)"
    attach = "ALTER TABLE p ATTACH PARTITION loose FOR VALUES IN (3)"
    detach = "ALTER TABLE p DETACH PARTITION"
    change = "UPDATE p SET v = v + 1 WHERE part = 3"
    return chance.choice(
        (
            [made, fill, "DROP TABLE p3"],
            [made, fill],
            [made, fill, f"{detach} p3"],
            ["BEGIN", made, fill, "DROP TABLE p3", "COMMIT"],
            [made, fill, change, "TRUNCATE p3"],
            [attach, change, f"{detach} loose"],
            [attach],
            [attach, "UPDATE p SET part = 1 WHERE part = 3 AND id = 301", f"{detach} loose"],
            ["BEGIN", attach, change, f"{detach} loose", "COMMIT"],
            [attach, f"{detach} loose CONCURRENTLY"],
            [f"{detach} p1", "ALTER TABLE p ATTACH PARTITION p1 FOR VALUES IN (1)"],
            [f"{detach} p1", "UPDATE p1 SET v = v + 1", "ALTER TABLE p ATTACH PARTITION p1 FOR VALUES IN (1)"],
            [f"{detach} p1 CONCURRENTLY", "UPDATE p1 SET v = v + 1 WHERE id < 5"],
            [f"{detach} p1 FINALIZE"],
            ["ALTER TABLE p2 DETACH PARTITION p2a", "ALTER TABLE p2 ATTACH PARTITION p2a FOR VALUES FROM (0) TO (100)"],
            ["ALTER TABLE p2 DETACH PARTITION p2b"],
            ["DROP TABLE p2a"],
            ["DROP TABLE p1", "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)"],
            [
                "CREATE TABLE pd PARTITION OF p DEFAULT",
                "INSERT INTO p (id, part, v) VALUES (801, 9, 5)",
                "DROP TABLE pd",
            ],
            ["CREATE TABLE pd PARTITION OF p DEFAULT", "INSERT INTO p (id, part, v) VALUES (801, 9, 5)"],
            [
                "BEGIN",
                f"{detach} p1",
                "ALTER TABLE p1 RENAME TO p1_old",
                "CREATE TABLE p1 (LIKE p INCLUDING ALL)",
                "INSERT INTO p1 VALUES (1, 1, 7), (2, 1, 8)",
                "ALTER TABLE p ATTACH PARTITION p1 FOR VALUES IN (1)",
                "COMMIT",
            ],
            ["ALTER TABLE p1 RENAME TO p1_x", "ALTER TABLE p1_x RENAME TO p1"],
        )
    )


def _heirs(chance: Chance) -> list[str]:
    return chance.choice(
        (
            ["CREATE TABLE h2 () INHERITS (h)", "INSERT INTO h2 (id, v) VALUES (801, 1)", "DROP TABLE h2"],
            ["CREATE TABLE h2 () INHERITS (h)", "INSERT INTO h2 (id, v) VALUES (802, 1)"],
            [
                "CREATE TABLE h2 () INHERITS (h)",
                "INSERT INTO h2 (id, v) VALUES (803, 1)",
                "ALTER TABLE h2 NO INHERIT h",
            ],
            ["CREATE TABLE h3 () INHERITS (h1)", "INSERT INTO h3 (id, v) VALUES (804, 1)", "UPDATE h SET v = v + 1"],
            ["ALTER TABLE h1 NO INHERIT h", "ALTER TABLE h1 INHERIT h"],
            ["ALTER TABLE h1 NO INHERIT h", "UPDATE h1 SET v = v + 1", "ALTER TABLE h1 INHERIT h"],
            ["ALTER TABLE h1 NO INHERIT h"],
            ["CREATE TABLE h4 (id int NOT NULL, v int)", "INSERT INTO h4 VALUES (805, 2)", "ALTER TABLE h4 INHERIT h"],
            ["ALTER TABLE h4 INHERIT h", "UPDATE h SET v = v + 1 WHERE id = 805", "ALTER TABLE h4 NO INHERIT h"],
            ["DROP TABLE h1 CASCADE"],
        )
    )


# Owners: functions, types, views


def _functions(chance: Chance) -> list[str]:
    n = chance.randint(2, 9)
    plpgsql = "IMMUTABLE LANGUAGE plpgsql AS"
    sql, reads = "IMMUTABLE LANGUAGE sql AS", "STABLE LANGUAGE sql AS"
    new = "CREATE OR REPLACE FUNCTION"
    return chance.choice(
        (
            [f"{new} inner_one(int) RETURNS int {sql} 'SELECT $1 + {n}'"],
            [f"{new} outer_one(int) RETURNS int {sql} 'SELECT public.inner_one($1) * {n}'"],
            [f"{new} atomic_one(x int) RETURNS int IMMUTABLE LANGUAGE sql BEGIN ATOMIC SELECT inner_one(x) * {n}; END"],
            [f"{new} plpgsql_one(int) RETURNS int {plpgsql} 'BEGIN RETURN public.inner_one($1) - {n}; END'"],
            [f"{new} add_up(bigint, int) RETURNS bigint {sql} 'SELECT $1 + $2 * {n}'"],
            [f"{new} later(int, int) RETURNS boolean {sql} 'SELECT $1 > $2 + {n}'"],
            [f"{new} name_of(int) RETURNS text {reads} 'SELECT name || {n} FROM public.u WHERE g = $1'"],
            [f"ALTER FUNCTION inner_one(int) {chance.choice(('STRICT', 'COST 5', 'STABLE', 'PARALLEL SAFE'))}"],
            ["ALTER FUNCTION inner_one(int) SET search_path = public", "ALTER FUNCTION inner_one(int) RESET ALL"],
            [
                "ALTER FUNCTION inner_one(int) RENAME TO inner_old",
                f"CREATE FUNCTION inner_one(int) RETURNS int {sql} 'SELECT $1 + {n}'",
            ],
            [f"CREATE OR REPLACE AGGREGATE my_sum(int) (SFUNC = add_up, STYPE = bigint, INITCOND = '{n}')"],
            # A nearer match for the call in a string body: nothing that exists is touched.
            [f"CREATE FUNCTION other.inner_one(int) RETURNS int {sql} 'SELECT $1 - {n}'"],
        )
    )


def _types(chance: Chance) -> list[str]:
    n = chance.randint(1, 9)
    return chance.choice(
        (
            [f"ALTER TYPE mood RENAME VALUE 'sad' TO 'low{n}'"],
            ["ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'", "ALTER TYPE mood RENAME VALUE 'fine' TO 'ok'"],
            ["ALTER TYPE mood RENAME VALUE 'ok' TO 'x'", "ALTER TYPE mood RENAME VALUE 'glad' TO 'ok'"],
            [f"ALTER TYPE mood ADD VALUE 'more{n}' BEFORE 'ok'"],
            ["ALTER TYPE mood RENAME TO feeling", "ALTER TYPE feeling RENAME TO mood"],
            ["ALTER TYPE pair RENAME ATTRIBUTE a TO b2 CASCADE", "ALTER TYPE pair RENAME ATTRIBUTE b2 TO a CASCADE"],
            ["ALTER TYPE pair ADD ATTRIBUTE c int CASCADE"],
            ["ALTER TYPE pair DROP ATTRIBUTE b CASCADE"],
            ["ALTER DOMAIN small ADD CONSTRAINT large CHECK (VALUE > -5) NOT VALID"],
            ["ALTER DOMAIN small SET DEFAULT 4"],
            ["ALTER TABLE w ALTER COLUMN m TYPE text"],
            ["ALTER TABLE w ALTER COLUMN d TYPE int", "ALTER TABLE w ALTER COLUMN d TYPE small"],
        )
    )


def _views(chance: Chance) -> list[str]:
    n = chance.randint(2, 9)
    view = "VIEW inner_view AS SELECT w.id, w.g, w.v, outer_one(w.v)"
    return chance.choice(
        (
            [f"CREATE OR REPLACE {view} + {n} AS o FROM w"],
            [f"CREATE OR REPLACE {view} AS o FROM w WHERE w.v > {n}"],
            ["ALTER VIEW inner_view RENAME TO inner_x", "ALTER VIEW inner_x RENAME TO inner_view"],
            ["ALTER VIEW outer_view SET (security_barrier = true)"],
            [
                "DROP VIEW outer_view",
                "CREATE VIEW outer_view AS SELECT v.id, v.o, 'none'::text AS name FROM inner_view AS v",
            ],
            ["DROP VIEW inner_view CASCADE"],
        )
    )


_REFILL_T = "SELECT n, n % 3, n FROM generate_series(3, 9) AS n"
_REFILL_U = "SELECT n, 'again ' || n FROM generate_series(1, 3) AS n"
_REFILL_P = "SELECT n, 1 + n % 2, n + 1 FROM generate_series(2, 8) AS n"
_REFILL_W = "SELECT n, n % 3, 'ok', n, ROW(n, 'n'), n FROM generate_series(3, 9) AS n"

_OF_T: tuple[tuple[int, Move], ...] = (
    (30, _writes_t),
    (6, _emptied("t", "id, g, v", _REFILL_T)),
    (3, _as_replica(_writes_t)),
    (12, _altered("t", "v")),
    (3, _rekeyed("t", "id")),
    (6, _rewritten("t", "v", "id, g, v", _REFILL_T)),
    (2, _swapped("t", "id, g, v", _REFILL_T)),
    (7, _triggers("t", _writes_t)),
    (4, _ours("t", _writes_t)),
)
_OF_U: tuple[tuple[int, Move], ...] = (
    (12, _writes_u),
    (3, _emptied("u", "g, name", _REFILL_U)),
    (8, _altered("u", "name", "text")),
    (2, _rekeyed("u", "g")),
    (5, _rewritten("u", "name", "g, name", _REFILL_U)),
    (2, _swapped("u", "g, name", _REFILL_U)),
    (4, _triggers("u", _writes_u)),
    (2, _ours("u", _writes_u)),
)
_MOVES: dict[str, tuple[tuple[int, Move], ...]] = {
    "joined": (*_OF_T, *_OF_U, (6, _kept("st_sum", "total")), (2, _kept("st_join", "v"))),
    "single": (
        *_OF_T,
        (10, _writes_k),
        (3, _altered("k", "a")),
        (2, _triggers("k", _writes_k)),
        (2, _ours("k", _writes_k)),
        (2, _as_replica(_writes_k)),
        (8, _writes_c),
        (3, _altered("c", "t_id")),
        (2, _triggers("c", _writes_c)),
    ),
    "tree": (
        (25, _writes_p),
        (20, _partitions),
        (4, _emptied("p", "id, part, v", _REFILL_P)),
        (6, _altered("p", "v")),
        (3, _altered("p1", "v")),
        (3, _rewritten("p1", "v", "id, part, v", "SELECT n, 1, n + 1 FROM generate_series(2, 8) AS n")),
        (4, _triggers("p", _writes_p)),
        (4, _triggers("p1", _writes_p)),
        (4, _triggers("p2a", _writes_p)),
        (3, _as_replica(_writes_p)),
        (2, _ours("p", _writes_p)),
        (1, _ours("p1", _writes_p)),
        (10, _writes_h),
        (10, _heirs),
        (3, _altered("h", "v")),
        (3, _triggers("h1", _writes_h)),
        (2, _ours("h", _writes_h)),
    ),
    "coded": (
        (25, _writes_w),
        (6, _writes_u),
        (16, _functions),
        (12, _types),
        (6, _views),
        (4, _altered("w", "v")),
        (2, _rewritten("w", "v", "id, g, m, d, r, v", _REFILL_W)),
        (3, _emptied("w", "id, g, m, d, r, v", _REFILL_W)),
        (2, _triggers("w", _writes_w)),
        (2, _ours("w", _writes_w)),
    ),
    "gathered": (*_OF_T, *_OF_U, (4, lambda chance: ["REFRESH MATERIALIZED VIEW mv"]), (2, _kept("st_left", "most"))),
}
assert _MOVES.keys() == WORLDS.keys()
