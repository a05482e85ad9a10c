"""Saved state + buffer = present state, after any sequence of statements."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import servers
from tests.database.capture.conftest import Captured

#: All of it holds whether triggers capture or the WAL is pumped.
pytestmark = pytest.mark.usefixtures("way")

VALUE = st.sampled_from(["NULL", "0", "1", "1.0", "2", "'NaN'"])
KEY = st.integers(0, 7)
ANYWHERE = st.sampled_from(["t", "t", "t", "t_1", "t_2"])

INSERT = st.builds("INSERT INTO t VALUES ({}, {}, {}, 'n') ON CONFLICT DO NOTHING".format, KEY, VALUE, KEY)
BULK = st.builds(
    "INSERT INTO t SELECT g, {}, g % 4 FROM generate_series({}, 7) AS g ON CONFLICT DO NOTHING".format, VALUE, KEY
)
UPSERT = st.builds(
    "INSERT INTO t VALUES ({0}, {1}, 1), ({0} + 8, {1}, 5) ON CONFLICT (id, p) DO UPDATE SET v = {1}".format, KEY, VALUE
)
UPDATE = st.builds("UPDATE {} SET v = {} WHERE id >= {}".format, ANYWHERE, VALUE, KEY)
IDLE = st.builds("UPDATE {} SET note = 'other' WHERE id > {}".format, ANYWHERE, KEY)
REKEY = st.builds("UPDATE t SET id = id + 20 WHERE id = {} AND NOT EXISTS (SELECT FROM t WHERE id >= 20)".format, KEY)
MOVE = st.builds("UPDATE t SET p = 7 - p WHERE id = {0} AND (SELECT count(*) FROM t WHERE id = {0}) = 1".format, KEY)
DELETE = st.builds("DELETE FROM {} WHERE id >= {}".format, ANYWHERE, KEY)
ONE = st.builds(
    "DELETE FROM t WHERE (tableoid, ctid) = (SELECT tableoid, ctid FROM t WHERE id = {} LIMIT 1)".format, KEY
)
MERGE = st.builds(
    "MERGE INTO t USING (VALUES ({}), (99)) AS s(id) ON t.id = s.id WHEN MATCHED AND v IS NULL THEN DELETE"
    " WHEN MATCHED THEN UPDATE SET v = {} WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1, 6)".format,
    KEY,
    VALUE,
)
COMMON = [INSERT, BULK, UPDATE, IDLE, REKEY, DELETE, ONE, MERGE, MOVE]


@pytest.mark.parametrize("role", ["origin", "replica"])
@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("partitioned", [True, False])
def test_the_buffer_replays_any_sequence_of_statements(conn18, admin_dsn, role, keyed, partitioned):
    key = ", PRIMARY KEY (id, p)" if keyed else ""
    conn18.execute(
        f"CREATE TABLE t (id int, v numeric, p int, note text{key}) {'PARTITION BY RANGE (p)' if partitioned else ''}"
    )
    if partitioned:
        conn18.execute("CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (MINVALUE) TO (4)")
        conn18.execute("CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (4) TO (MAXVALUE)")
    else:
        conn18.execute("CREATE VIEW t_1 AS SELECT * FROM t WHERE p < 4")
        conn18.execute("CREATE VIEW t_2 AS SELECT * FROM t WHERE p >= 4")
    table = Captured(conn18, "t", ["id", "v", "p"])
    statements = [*COMMON, UPSERT] if keyed else COMMON

    with servers.user_session(admin_dsn) as writer:
        writer.execute(f"SET session_replication_role = {role}")

        @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
        @given(sequence=st.lists(st.one_of(statements), min_size=1, max_size=8), rolled_back=st.booleans())
        def replays(sequence, rolled_back):
            writer.execute("DELETE FROM t")
            writer.execute("INSERT INTO t SELECT g, g % 3, g FROM generate_series(0, 7) AS g")
            table.save()
            with writer.transaction(force_rollback=rolled_back):
                for statement in sequence:
                    writer.execute(statement)
            assert table.differences() == []

        replays()
