"""A published stream table: its subscriber has the same rows, whatever becomes of the partitions."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests import servers
from tests.answers import only
from tests.database.refresh.test_partitions import FILL, MONTHS, NOON, ROWS, E, declare, members
from tests.database.reported.conftest import Site, refresh, site_at


@dataclass
class Published:
    """A site, and a superuser's sessions in it and in the database that subscribes to its stream table."""

    site: Site
    admin: psycopg.Connection[Any]
    subscriber: psycopg.Connection[Any]
    dsn: str
    """The superuser's, of the site."""

    def publish(self) -> None:
        """Publish `st` with all that it has, and wait until the subscriber has it."""
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind))
            for name, kind in self.site.rows(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
                " WHERE attrelid = 'st'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
            )
        )
        for conn in (self.admin, self.subscriber):
            conn.execute("CREATE TABLE marks (id serial PRIMARY KEY)")
        # A row that comes twice is refused.
        self.subscriber.execute(sql.SQL("CREATE TABLE st ({}, UNIQUE (id))").format(columns))
        slot = f"slot_{uuid.uuid4().hex[:8]}"
        self.admin.execute("CREATE PUBLICATION p FOR TABLE st, marks WITH (publish_via_partition_root)")
        # Within one server CREATE SUBSCRIPTION would wait for itself, were it to create the slot.
        self.admin.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [slot])
        self.subscriber.execute(
            sql.SQL(
                "CREATE SUBSCRIPTION {} CONNECTION {} PUBLICATION p WITH (create_slot = false, slot_name = {})"
            ).format(sql.Identifier(slot), sql.Literal(self.dsn), sql.Literal(slot))
        )
        self.arrive()

    def arrive(self) -> None:
        """Wait until the subscriber has applied all that was committed: a mark comes after everything before it."""
        for done in ("SELECT NOT EXISTS (SELECT FROM pg_subscription_rel WHERE srsubstate <> 'r')", "SELECT true"):
            (mark,) = only(self.admin.execute("INSERT INTO marks DEFAULT VALUES RETURNING id"))
            arrived = f"SELECT ({done}) AND EXISTS (SELECT FROM marks WHERE id = {mark})"
            while self.subscriber.execute(arrived).fetchone() == (False,):
                pass

    def differ(self) -> bool:
        """Whether the subscriber has other rows."""
        self.arrive()
        rows = "SELECT id, at, v FROM st ORDER BY id, at"
        return self.site.rows(rows) != self.subscriber.execute(rows).fetchall()


@pytest.fixture
def published(any_dsn: str, request: pytest.FixtureRequest) -> Iterator[Published]:
    for site in site_at(any_dsn, placement="database"):
        site.run(E, FILL)
        second = servers.is_second(site.conn)
        server = request.getfixturevalue("postgres15" if second else "postgres18")
        admin_dsn = request.getfixturevalue("admin_dsn15" if second else "admin_dsn")
        with (
            servers.fresh_database(server) as name,
            psycopg.connect(admin_dsn, autocommit=True) as admin,
            psycopg.connect(server.dsn(name), autocommit=True) as subscriber,
        ):
            for conn in (admin, subscriber):
                conn.execute("SET TimeZone TO 'UTC'")
            site.run("SET TimeZone TO 'UTC'")
            yield Published(site, admin, subscriber, server.dsn(site.conn.info.dbname))


def test_what_is_kept_leaves_the_subscriber_too(published: Published) -> None:
    site = published.site
    declare(site, "st", ROWS, **MONTHS, keep="3 months")
    published.publish()
    assert not published.differ()
    site.run("UPDATE e SET v = v + 1 WHERE id < 20", "INSERT INTO e (id, at, v) VALUES (100, '2026-04-01', 1)")
    result = refresh(site, "st", at=NOON + timedelta(days=4))["st"]
    assert (result.action, result.rows_deleted) == ("DIFFERENTIAL", 11)
    assert not published.differ()
    # A later refresh drops what is empty by now, and nobody is told of that.
    site.run("DELETE FROM e WHERE id = 3")
    assert refresh(site, "st", at=NOON + timedelta(days=5))["st"].action == "DIFFERENTIAL"
    assert "st_2025_12" not in members(site)
    assert not published.differ()
    assert site.differs("st", f"{ROWS} WHERE at >= '2026-01-01 00:00+00'") == []


@pytest.mark.parametrize("bounds", ["FROM ('2026-03-01') TO ('2026-04-01')", "FROM ('2031-01-01') TO ('2032-01-01')"])
def test_rows_that_move_into_a_partition_leave_before_they_come(published: Published, bounds: str) -> None:
    site = published.site
    declare(site, "st", ROWS, partition_by="at")
    published.publish()
    moved = 9 if "2026" in bounds else 0
    quoted = bounds.replace("'", "''")
    assert site.rows(f"SELECT pgtrickle.add_partition('st', 'apart', '{quoted}')") == [(moved,)]
    assert not published.differ()
    # The new partition tells as much of old rows as the others, so that its rows can be updated and deleted.
    site.run("UPDATE e SET v = v + 1 WHERE id < 20", "DELETE FROM e WHERE id IN (4, 40)")
    site.run("INSERT INTO e (id, at, v) VALUES (100, '2031-04-01', 1), (101, '2026-03-02', 1)")
    assert refresh(site, "st", at=NOON)["st"].action == "DIFFERENTIAL"
    assert not published.differ()
    site.run("UPDATE e SET v = v + 1 WHERE id > 90", "DELETE FROM e WHERE id = 101")
    assert refresh(site, "st", at=NOON)["st"].action == "DIFFERENTIAL"
    assert site.differs("st", ROWS) == []
    assert not published.differ()
