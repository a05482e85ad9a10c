"""What a run did to each stream table, and whether the table now equals its query."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

_LATEST = """
    SELECT st.pgt_schema, st.pgt_name, st.original_query, st.storage, h.refresh_id, h.action, h.fallback_reason,
           h.rows_inserted, h.rows_updated, h.rows_deleted, h.duration_ms
    FROM pgtrickle.pgt_stream_tables AS st
    LEFT JOIN LATERAL (
        SELECT * FROM pgtrickle.pgt_refresh_history AS h
        WHERE h.pgt_id = st.pgt_id AND h.refresh_id > %s
        ORDER BY h.refresh_id DESC LIMIT 1
    ) AS h ON true
    WHERE NOT st.is_hidden
    ORDER BY st.pgt_id
"""


@dataclass(frozen=True)
class Line:
    """One stream table after one run."""

    name: str
    action: str
    reason: str | None
    inserted: int
    updated: int
    deleted: int
    milliseconds: float | None
    rows: int
    differing: int

    @property
    def equal(self) -> bool:
        return self.differing == 0


def last_refresh(dsn: str) -> int:
    """The newest entry of the history; later ones belong to the next run."""
    with psycopg.connect(dsn) as conn:
        if conn.execute("SELECT to_regclass('pgtrickle.pgt_refresh_history')").fetchone() == (None,):
            return 0
        return int(_scalar(conn, sql.SQL("SELECT COALESCE(max(refresh_id), 0) FROM pgtrickle.pgt_refresh_history")))


def lines_since(dsn: str, refresh_id: int) -> list[Line]:
    with psycopg.connect(dsn) as conn:
        # The table and its query are read at one instant.
        conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with conn.cursor(row_factory=dict_row) as cursor:
            found = cursor.execute(_LATEST, [refresh_id]).fetchall()
        return [_line(conn, row) for row in found]


def table(lines: list[Line]) -> str:
    head = ("stream table", "action", "+rows", "~rows", "-rows", "ms", "rows", "equals its query")
    body = [
        (
            line.name,
            line.action,
            str(line.inserted),
            str(line.updated),
            str(line.deleted),
            "-" if line.milliseconds is None else f"{line.milliseconds:.0f}",
            str(line.rows),
            "yes" if line.equal else f"NO: {line.differing} rows differ",
        )
        for line in lines
    ]
    widths = [max(len(row[column]) for row in (head, *body)) for column in range(len(head))]
    texts = {0, 1, 7}

    def printed(row: tuple[str, ...]) -> str:
        cells = (c.ljust(w) if i in texts else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        return "  ".join(cells).rstrip()

    reasons = [f"{line.name}: {line.action} because {line.reason}" for line in lines if line.reason]
    return "\n".join([printed(head), printed(tuple("-" * w for w in widths)), *map(printed, body), *reasons])


def _line(conn: psycopg.Connection, row: dict[str, object]) -> Line:
    stored = sql.Identifier(str(row["pgt_schema"]), str(row["pgt_name"]))
    storage = row["storage"]
    assert isinstance(storage, list)
    visible = sql.SQL(", ").join(sql.Identifier(c["name"]) for c in storage if c["role"] == "visible")
    content = sql.SQL("SELECT {} FROM {}").format(visible, stored)
    # The query is the author's own text, and runs as the role that owns the table.
    query = sql.SQL(str(row["original_query"]).rstrip().rstrip(";"))
    differing = sql.SQL(
        "SELECT count(*) FROM ((({content}) EXCEPT ALL ({query})) UNION ALL (({query}) EXCEPT ALL ({content}))) AS d"
    ).format(content=content, query=query)
    return Line(
        name=str(row["pgt_name"]),
        # `plan` skips a table without changes and records nothing.
        action=str(row["action"] or "NO_DATA"),
        reason=None if row["fallback_reason"] is None else str(row["fallback_reason"]),
        inserted=int(str(row["rows_inserted"] or 0)),
        updated=int(str(row["rows_updated"] or 0)),
        deleted=int(str(row["rows_deleted"] or 0)),
        milliseconds=None if row["duration_ms"] is None else float(str(row["duration_ms"])),
        rows=int(_scalar(conn, sql.SQL("SELECT count(*) FROM {}").format(stored))),
        differing=int(_scalar(conn, differing)),
    )


def _scalar(conn: psycopg.Connection, query: sql.SQL | sql.Composed) -> int:
    found = conn.execute(query).fetchone()
    assert found is not None
    return int(found[0])
