"""PostgreSQL's own regression tests: each SELECT over tables as a stream table, changed and compared.

The texts come from Debian's source package of the server's version when this runs, through the mirror that apt uses;
`--regress FOLDER` names a folder that holds `sql` and `data` instead. A file is played statement by statement in a
database of its own; TEMP is left out, because no stream table reads temporary tables. Its SELECTs, those under EXPLAIN
included, are declared in mode DIFFERENTIAL, or AUTO where that is refused. Then rows of what they read are changed,
the table is refreshed, and content and query are compared as bags of texts, both ways. What can't be a stream table in
any mode is left out: no table of the user's in it, nothing that a view could be made of.
"""

from __future__ import annotations

import random
import re
import subprocess
import tarfile
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import psycopg
from psycopg import sql

from airflow_provider_pgtrickle.client import PgTrickle
from airflow_provider_pgtrickle.engine.dvm.reasons import Reason
from airflow_provider_pgtrickle.engine.errors import NotDifferentiable, PgTrickleError
from tests.benchmarks import place
from tests.benchmarks.measure import Goal, Measured
from tests.benchmarks.psql_script import Statement, statements

FILES = ("join", "aggregates", "window", "union", "with", "groupingsets", "subselect", "select_distinct")
CYCLES = 2
_EXPLAIN = re.compile(r"explain\s*(\([^)]*\)|(?:(?:verbose|analyze)\b\s*)*)\s*", re.IGNORECASE)
_IGNORED = re.compile(r"(set|reset|begin|start|commit|end|savepoint|release|vacuum|show)\b", re.IGNORECASE)
_ROLLBACK = re.compile(r"(rollback|abort)\b(?!\s+to)", re.IGNORECASE)
_TEMPORARY = re.compile(r"\b(create\s+(?:or\s+replace\s+)?|into\s+)(?:local\s+)?temp(?:orary)?\b", re.IGNORECASE)
_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_NO_QUERY = re.compile(
    r"\s*(insert|update|delete|merge|create|drop|copy|do|alter|declare|prepare|execute)\b", re.IGNORECASE
)
#: Reasons for which the answer is no function of the tables' rows.
_UNDETERMINED = (
    "The query reads the sequence",
    *(
        reason.sentence
        for reason in (
            Reason.VOLATILE_FUNCTION,
            Reason.TIME_DEPENDENT,
            Reason.COMPUTES_WITH_CLOCK,
            Reason.AMBIGUOUS_ORDER,
            Reason.TABLESAMPLE,
            Reason.LIMIT_WITHOUT_ORDER,
        )
    ),
)
_ON_COMMIT = re.compile(r"\bon\s+commit\s+(drop|delete\s+rows|preserve\s+rows)", re.IGNORECASE)
_TABLES_OF_PROBE = """
WITH RECURSIVE read (oid) AS (
    SELECT 'pgt_probe'::regclass::oid
    UNION SELECT m[1]::oid FROM read r JOIN pg_rewrite w ON w.ev_class = r.oid AND w.ev_type = '1'
          CROSS JOIN LATERAL regexp_matches(w.ev_action::text, ':rtekind 0 :relid (\\d+)', 'g') AS m)
SELECT c.oid::regclass::text FROM read JOIN pg_class c USING (oid)
 WHERE c.relkind IN ('r', 'p', 'f') AND c.oid >= 16384 ORDER BY 1
"""
#: Some of the queries give 10,000 rows for each of 10,000.
_FEWER = """
DELETE FROM tenk1 WHERE unique1 >= 300 AND unique2 >= 300;
DELETE FROM tenk2 WHERE unique1 >= 300 AND unique2 >= 300;
DELETE FROM onek WHERE unique1 >= 100 AND unique2 >= 100;
"""
_DIGEST = "SELECT md5(string_agg(r, ' ' ORDER BY r)) FROM (SELECT ROW(q.*)::text AS r FROM ({}) AS q) AS x"
_COLUMNS = """
SELECT attname, format_type(atttypid, NULL), attnotnull FROM pg_attribute
 WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attidentity <> 'a'
 ORDER BY attnum
"""
#: Every value of every row, none of which the planner may leave out.
_EVALUATED = "SELECT count(ROW(q.*)::text) FROM ({}) AS q"


def run(dsn: str, folder: Path | None, files: Iterable[str] = FILES) -> Iterator[Measured]:
    with scripts(dsn, folder) as held:
        for file in files:
            with (
                place.database(dsn) as plain,
                _in_time(plain) as url,
                PgTrickle(url, placement="database", differential_max_change_ratio=0.0) as pt,
                psycopg.connect(url, autocommit=True) as conn,
            ):
                pt.install()
                played = Played(pt, conn, held)
                played.set_up("test_setup")
                conn.execute(_FEWER)
                yield from played.file(file)


@contextmanager
def _in_time(dsn: str) -> Iterator[str]:
    """The URL under which every statement ends."""
    yield psycopg.conninfo.make_conninfo(dsn, options="-cstatement_timeout=60s")


def goals(rows: list[Measured]) -> Iterator[Goal]:
    by_outcome = Counter(row.facts["outcome"] for row in rows)
    judged = sum(by_outcome[o] for o in ("kept", "full", "refused", "wrong", "failed"))
    yield Goal("PostgreSQL's regression SELECTs whose content is not the query's", 0, by_outcome["wrong"])
    yield Goal("PostgreSQL's regression SELECTs that fail", 0, by_outcome["failed"])
    share = 100 * by_outcome["kept"] / max(judged, 1)
    yield Goal("percent of PostgreSQL's deterministic regression SELECTs kept by differences", 99, share, at_most=False)


@contextmanager
def scripts(dsn: str, folder: Path | None) -> Iterator[Path]:
    """The folder with the regression tests' `sql` and `data`, readable for the server."""
    if folder is not None:
        yield folder
        return
    with psycopg.connect(dsn) as conn:
        package = f"postgresql-{conn.info.server_version // 10_000}"
    with tempfile.TemporaryDirectory(prefix="pgtrickle-regress-") as made:
        Path(made).chmod(0o755)
        yield _fetched(package, Path(made))


def _fetched(package: str, folder: Path) -> Path:
    """The tests out of Debian's source package, by apt's own mirror and keys; apt's configuration stays as it is."""
    mirrors = _apt("indextargets", "--format", "$(REPO_URI)").splitlines()
    uri = next(mirror for mirror in mirrors if mirror.rstrip("/").endswith("/debian"))
    lists = folder / "sources.list"
    keys = f"[signed-by={_KEYS}] " if _KEYS.exists() else ""
    lists.write_text("".join(f"deb-src {keys}{uri} {suite} main\n" for suite in ("stable", "testing", "unstable")))
    (folder / "lists" / "partial").mkdir(parents=True)
    (folder / "cache" / "archives" / "partial").mkdir(parents=True)
    options = [
        f"-oDir::Etc::sourcelist={lists}",
        "-oDir::Etc::sourceparts=/dev/null",
        f"-oDir::State::lists={folder / 'lists'}",
        f"-oDir::Cache={folder / 'cache'}",
    ]
    _apt("-qq", "update", *options)
    _apt("-qq", "source", "--download-only", package, *options, folder=folder)
    (archive,) = folder.glob(f"{package}_*.orig.tar.*")
    with tarfile.open(archive) as opened:
        wanted = [m for m in opened if re.match(r"[^/]+/src/test/regress/(sql|data)/", m.name)]
        opened.extractall(folder, wanted, filter="data")
    (found,) = folder.glob("*/src/test/regress")
    return found


def _apt(*arguments: str, folder: Path | None = None) -> str:
    done = subprocess.run(["apt-get", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


# -- playing a file ----------------------------------------------------------------------------------


@dataclass
class Played:
    pt: PgTrickle
    conn: psycopg.Connection
    folder: Path
    made: list[str] = field(default_factory=list)
    """What the open transaction of the script has created: its ROLLBACK drops it."""
    seen: set[str] = field(default_factory=set)

    def set_up(self, name: str) -> None:
        for statement in self._statements(name):
            self._execute(statement)

    def file(self, name: str) -> Iterator[Measured]:
        for number, statement in enumerate(self._statements(name)):
            text = _EXPLAIN.sub("", statement.text, count=1) if statement.text[:7].lower() == "explain" else None
            text = text or statement.text
            if text in self.seen:
                continue
            self.seen.add(text)
            if tables := self._read(text):
                yield Measured("regress", f"{name}-{number}", *self._judged(text, tables, seed=number))
            elif text == statement.text:
                self._execute(statement)

    def _statements(self, name: str) -> Iterator[Statement]:
        variables = {"abs_srcdir": str(self.folder), "libdir": "", "dlsuffix": ""}
        return statements((self.folder / "sql" / f"{name}.sql").read_text(), variables)

    def _execute(self, statement: Statement) -> None:
        """Execute a statement of the script; many are meant to fail."""
        text = _ON_COMMIT.sub("", _TEMPORARY.sub(r"\1", statement.text))
        if _ROLLBACK.match(text):
            for name in reversed(self.made):
                self._tried(f"DROP TABLE IF EXISTS {name} CASCADE")
        if re.match(r"begin|start|rollback|commit|abort|end\b", text, re.IGNORECASE):
            self.made.clear()
        if _IGNORED.match(text) or _ROLLBACK.match(text):
            return
        if created := re.match(r"create\s+(?:unlogged\s+)?table\s+(?:if\s+not\s+exists\s+)?([\w.]+)", text, re.I):
            self.made.append(created[1])
        if statement.rows:
            with self.conn.cursor().copy(text.encode()) as stream:
                stream.write(statement.rows)
            return
        self._tried(text)

    def _tried(self, text: str) -> None:
        try:
            self.conn.execute(text.encode())
        except psycopg.Error:
            self.conn.rollback()

    def _read(self, text: str) -> list[str]:
        """The user's tables that a query reads, through views too; none if no view could be made of it."""
        if _NO_QUERY.match(text):
            return []
        try:
            with self.conn.transaction(force_rollback=True):
                self.conn.execute(f"CREATE VIEW pgt_probe AS {named(self.conn, text)}".encode())
                return [name for (name,) in self.conn.execute(_TABLES_OF_PROBE)]
        except psycopg.Error:
            return []

    # -- one query -------------------------------------------------------------------------------------

    def _judged(self, raw: str, tables: Sequence[str], seed: int) -> tuple[float, dict[str, Any]]:
        begin = perf_counter()
        facts: dict[str, Any] = {"outcome": "kept", "actions": "", "why": None, "text": raw}
        try:
            text = named(self.conn, raw)
            with self.conn.transaction():
                self.conn.execute(_EVALUATED.format(text).encode())
        except psycopg.Error as error:
            facts |= {"outcome": "no answer", "why": str(error)}
            return perf_counter() - begin, facts
        try:
            self._follow(text, tables, seed, facts)
        except Exception as error:  # whatever it is, users would see it
            facts |= {"outcome": "failed", "why": f"{type(error).__name__}: {error}"}
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.pt.drop_stream_table("pgt_st", if_exists=True, cascade=True)
        return perf_counter() - begin, facts

    def _follow(self, text: str, tables: Sequence[str], seed: int, facts: dict[str, Any]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                told = self.pt.validate_query(text)
            except PgTrickleError as refused:
                outcome = "undetermined" if any(words in refused.message for words in _UNDETERMINED) else "refused"
                facts |= {"outcome": outcome, "why": refused.message}
                try:
                    self.pt.create_stream_table("pgt_st", text)
                except PgTrickleError:
                    return
                facts |= {"outcome": "failed", "why": f"validate alone refuses it: {refused.message}"}
                return
            try:
                self.pt.create_stream_table("pgt_st", text, refresh_mode="DIFFERENTIAL")
            except NotDifferentiable as refused:
                facts |= {"outcome": "full", "why": refused.message}
                self.pt.create_stream_table("pgt_st", text, refresh_mode="AUTO")
                if any(words in refused.message for words in _UNDETERMINED):
                    facts |= {"outcome": "undetermined"}
                    return
        if told.differentiable is (facts["outcome"] == "full"):
            facts |= {"outcome": "failed", "why": f"validate said {told.differentiable}: {told.reason}"}
            return
        facts |= {"sink": told.sink, "because": told.because}
        if self._is_off(text, tables, facts, "at once"):
            return
        actions = []
        for cycle in range(CYCLES):
            self._change(text, tables, random.Random(1000 * seed + cycle))
            result = self.pt.refresh_stream_table("pgt_st")
            actions.append(result.action)
            facts["actions"] = " ".join(actions)
            if self._is_off(text, tables, facts, f"cycle {cycle}"):
                return
            if facts["outcome"] in ("kept", "open") and result.action in ("FULL", "REINITIALIZE"):
                facts |= {"outcome": "full", "why": result.fallback_reason}

    def _is_off(self, text: str, tables: Sequence[str], facts: dict[str, Any], when: str) -> bool:
        """Whether the content is not the query's answer; what the query leaves open is told apart."""
        differing = self._difference(text)
        if not differing:
            return False
        if not self._is_open(text, tables):
            facts |= {"outcome": "wrong", "why": f"{when}: {differing}"}
            return True
        facts |= {"outcome": "open", "why": "PostgreSQL answers otherwise when the same rows lie in another order"}
        return False

    def _is_open(self, text: str, tables: Sequence[str]) -> bool:
        """Whether PostgreSQL itself gives another answer for the same rows in another order, or by another plan."""
        answers = set()
        for number in range(8):
            with self.conn.transaction(force_rollback=True):
                if number % 2:
                    self.conn.execute("SET LOCAL enable_hashagg = off; SET LOCAL enable_hashjoin = off")
                for table in tables if number else ():
                    self.conn.execute(
                        f"CREATE TEMP TABLE pgt_shuffled ON COMMIT DROP AS"
                        f" SELECT * FROM {table} ORDER BY md5(ctid::text || '{number}');"
                        f"DELETE FROM {table}; INSERT INTO {table} SELECT * FROM pgt_shuffled; DROP TABLE pgt_shuffled"
                    )
                answers.add(self.conn.execute(_DIGEST.format(text).encode()).fetchone())
        return len(answers) > 1

    def _difference(self, text: str) -> str:
        columns = self.conn.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'pgt_st'::regclass AND attnum > 0"
            " AND NOT starts_with(attname, '__pgt_') AND NOT attisdropped ORDER BY attnum"
        )
        names = sql.SQL(", ").join(sql.Identifier(name) for (name,) in columns).as_string(None)
        said = []
        for what, pattern in (("too many", "({0}) EXCEPT ALL ({1})"), ("missing", "({1}) EXCEPT ALL ({0})")):
            stored = f"SELECT ROW(x.*)::text FROM (SELECT {names} FROM pgt_st) AS x"
            wanted = f"SELECT ROW(x.*)::text FROM ({text}) AS x"
            rows = self.conn.execute(pattern.format(stored, wanted).encode()).fetchall()
            if rows:
                said.append(f"{what} {len(rows)}: {[r[0] for r in rows[:3]]}")
        return "; ".join(said)

    # -- changes -----------------------------------------------------------------------------------------

    def _change(self, text: str, tables: Sequence[str], rng: random.Random) -> None:
        """Change some rows of each table, so that the query still has an answer."""
        for _ in range(6):
            try:
                with self.conn.transaction():
                    self.conn.execute("SET LOCAL statement_timeout = '5s'")
                    for table in tables:
                        for statement in self._changes(table, rng):
                            try:
                                with self.conn.transaction():
                                    self.conn.execute(statement.encode())
                            except psycopg.Error:
                                continue  # a constraint of the table's
                    self.conn.execute(_EVALUATED.format(text).encode())
            except psycopg.Error:
                continue
            return

    def _changes(self, table: str, rng: random.Random) -> Iterator[str]:
        held = self.conn.execute(_COLUMNS, [table]).fetchall()
        columns = [(sql.Identifier(n).as_string(None), kind, needed) for n, kind, needed in held]
        if not columns:
            return
        listed = ", ".join(name for name, _, _ in columns)
        where = (
            "(tableoid, ctid) IN (SELECT tableoid, ctid FROM {0} ORDER BY md5(ctid::text || '{1}'), tableoid LIMIT {2})"
        )

        def some(count: int) -> str:
            return where.format(table, rng.random(), count)

        def drawn(name: str, kind: str, needed: bool) -> str:
            """A value of the column: one that another row has, NULL, or a small one."""
            if not needed and rng.random() < 0.15:
                return "NULL"
            if rng.random() < 0.15 and kind in _NUMBERS:
                return rng.choice(_SMALL)
            return f"(SELECT {name} FROM {table} ORDER BY md5(ctid::text || '{rng.random()}'), tableoid LIMIT 1)"

        for _ in range(rng.randint(1, 2)):
            values = [drawn(*c) for c in columns]
            yield f"INSERT INTO {table} ({listed}) VALUES ({', '.join(values)}) ON CONFLICT DO NOTHING"
            copied = ", ".join(
                f"{n} + {rng.randint(1, 100000)}" if kind in _NUMBERS and rng.random() < 0.5 else n
                for n, kind, _ in columns
            )
            yield (
                f"INSERT INTO {table} ({listed}) SELECT {copied} FROM {table} WHERE {some(rng.randint(1, 2))}"
                " ON CONFLICT DO NOTHING"
            )
        for _ in range(2):
            chosen = rng.sample(columns, min(len(columns), rng.randint(1, 2)))
            assignments = ", ".join(f"{c[0]} = {drawn(*c)}" for c in chosen)
            yield f"UPDATE {table} SET {assignments} WHERE {some(rng.randint(1, 3))}"
        yield f"DELETE FROM {table} WHERE {some(rng.randint(1, 2))}"


_NUMBERS = ("integer", "bigint", "smallint", "numeric", "double precision", "real")
_SMALL = ("0", "1", "2", "3", "4", "42", "-1")


def named(conn: psycopg.Connection, text: str) -> str:
    """The query with a name of its own for each column: some have two of one name, or none."""
    described = conn.execute(f"SELECT * FROM ({text}) AS q LIMIT 0".encode()).description or ()
    names = [column.name for column in described]
    if len(set(names)) == len(names) and "?column?" not in names and names:
        return text
    listed = ", ".join(f"c{number}" for number in range(1, len(names) + 1))
    return f"SELECT * FROM ({text}) AS q({listed})"
