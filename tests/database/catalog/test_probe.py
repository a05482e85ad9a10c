"""PostgreSQL says what a query means, and where it is wrong."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.catalog import records
from airflow_provider_pgtrickle.engine.catalog.probe import probe
from airflow_provider_pgtrickle.engine.catalog.records import StorageColumn
from airflow_provider_pgtrickle.engine.errors import PermissionFault, QueryError, SyntaxFault


@pytest.fixture
def shop(conn):
    conn.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, price numeric(10,2), note json)")
    conn.execute('CREATE TABLE customers (customer int PRIMARY KEY, name text COLLATE "C")')
    conn.execute("CREATE SCHEMA archive")
    conn.execute("CREATE TABLE archive.orders (id int PRIMARY KEY, old text)")
    conn.execute('CREATE TABLE archive."Mixed Case" (id int, "Some Column" varchar(7), "select" text)')
    conn.execute("CREATE VIEW totals AS SELECT customer, sum(price) AS total FROM orders GROUP BY customer")
    conn.execute("CREATE VIEW named AS SELECT name, total FROM totals JOIN customers USING (customer)")
    return conn


def used(probed) -> dict[str, tuple[str, ...]]:
    return {f"{s.schema}.{s.name}": probed.columns_used[s.relid] for s in probed.sources}


def test_nothing_of_a_probe_remains(shop):
    before = shop.execute("SELECT count(*) FROM pg_class").fetchone()
    path = shop.execute("SHOW search_path").fetchone()
    probe(shop, "SELECT id FROM orders")
    assert shop.execute("SELECT count(*) FROM pg_class").fetchone() == before
    assert shop.execute("SHOW search_path").fetchone() == path


def test_new_names_for_the_columns_of_xmltable_and_json_table_are_refused(shop):
    """PostgreSQL prints them with the names in COLUMNS alone: v of q (w, v) would be another column."""
    if shop.info.server_version >= 170000:
        made = "JSON_TABLE(note::jsonb, '$' COLUMNS (v int PATH '$.v', w int PATH '$.w')) AS q"
    else:
        made = "XMLTABLE('/r' PASSING (note::text::xml) COLUMNS v int PATH '@v', w int PATH '@w') AS q"
    assert used(probe(shop, f"SELECT id, q.w FROM orders, {made}")) == {"public.orders": ("id", "note")}
    shop.execute(f"CREATE VIEW renamed AS SELECT id, q.v FROM orders, {made} (w, v)")
    for query in (f"SELECT id, q.v FROM orders, {made} (w, v)", f"SELECT q.* FROM orders, {made} (z)", "TABLE renamed"):
        with pytest.raises(QueryError, match="forgets the new names") as refused:
            probe(shop, query)
        assert "COLUMNS" in str(refused.value)


def test_a_probe_inside_a_transaction_leaves_the_transaction_alone(shop):
    with shop.transaction():
        shop.execute("CREATE TABLE fresh (a int)")
        assert used(probe(shop, "SELECT a FROM fresh")) == {"public.fresh": ("a",)}
        with pytest.raises(SyntaxFault):
            probe(shop, "SELECT b FROM fresh")
        shop.execute("INSERT INTO fresh VALUES (1)")
    assert shop.execute("SELECT a FROM fresh").fetchall() == [(1,)]


def test_output_columns_have_postgresqls_names_types_and_collations(shop):
    columns = probe(shop, "SELECT id, price * 2 AS twice, price, name FROM orders, customers").columns
    assert [(c.name, c.type, c.collation) for c in columns] == [
        ("id", "integer", None),
        ("twice", "numeric", None),
        ("price", "numeric(10,2)", None),
        ("name", "text", 'pg_catalog."C"'),
    ]


def test_names_follow_the_search_path(shop):
    assert used(probe(shop, "SELECT id FROM orders")) == {"public.orders": ("id",)}
    shop.execute("SET search_path = archive, public")
    probed = probe(shop, "SELECT id, old FROM orders")
    assert used(probed) == {"archive.orders": ("id", "old")}
    assert "archive.orders" in probed.canonical


def test_quoted_and_mixed_case_names_are_kept(shop):
    probed = probe(shop, 'SELECT "Some Column" AS "Out Put", "select" FROM archive."Mixed Case"')
    assert used(probed) == {"archive.Mixed Case": ("Some Column", "select")}
    assert [c.name for c in probed.columns] == ["Out Put", "select"]


def test_unquoted_names_fold(shop):
    assert used(probe(shop, "SELECT ID FROM Orders")) == {"public.orders": ("id",)}


def test_a_cte_shadows_a_table(shop):
    assert used(probe(shop, "WITH orders AS (SELECT 1 AS id) SELECT id FROM orders")) == {}
    probed = probe(shop, "WITH orders AS (SELECT name FROM customers) SELECT o.name FROM orders o")
    assert used(probed) == {"public.customers": ("name",)}


def test_views_are_followed_to_their_tables(shop):
    probed = probe(shop, "SELECT name FROM named")
    assert used(probed) == {"public.orders": ("customer", "price"), "public.customers": ("customer", "name")}
    assert set(probed.schema.views) == {("public", "named"), ("public", "totals")}
    assert probed.schema.view_columns["public", "named"] == ("name", "total")
    assert '"public"."orders"' in probed.schema.views["public", "totals"]
    assert len(probed.views) == 2


def test_views_nested_too_deep_are_refused(shop):
    shop.execute("CREATE VIEW v0 AS SELECT id FROM orders")
    for depth in range(1, 34):
        shop.execute(f"CREATE VIEW v{depth} AS SELECT id FROM v{depth - 1}")
    assert used(probe(shop, "SELECT id FROM v20")) == {"public.orders": ("id",)}
    with pytest.raises(QueryError, match="nested more than 32 deep"):
        probe(shop, "SELECT id FROM v33")


def test_a_star_is_expanded(shop):
    probed = probe(shop, "SELECT * FROM customers")
    assert "*" not in probed.canonical
    assert used(probed) == {"public.customers": ("customer", "name")}
    assert probed.open_ended


def test_a_row_as_one_value_is_all_of_its_table(shop):
    shop.execute("CREATE VIEW whole AS SELECT to_jsonb(c) AS j FROM customers c")
    for query in ("SELECT to_jsonb(c) AS j FROM customers c", "SELECT j FROM whole"):
        probed = probe(shop, query)
        assert used(probed) == {"public.customers": ("customer", "name")}
        assert probed.open_ended


def test_a_natural_join_is_resolved(shop):
    probed = probe(shop, "SELECT id FROM orders NATURAL JOIN customers")
    assert "USING (customer)" in probed.canonical
    assert used(probed) == {"public.orders": ("id", "customer"), "public.customers": ("customer",)}
    assert probed.open_ended


def test_count_star_uses_no_column(shop):
    assert used(probe(shop, "SELECT count(*) AS n FROM orders")) == {"public.orders": ()}


def test_a_whole_row_uses_every_column(shop):
    assert used(probe(shop, "SELECT to_jsonb(c) AS j FROM customers c")) == {"public.customers": ("customer", "name")}


def test_columns_in_subqueries_conditions_and_orderings_are_used(shop):
    probed = probe(shop, "SELECT name FROM customers c WHERE EXISTS (SELECT FROM orders o WHERE o.price > c.customer)")
    assert used(probed) == {"public.customers": ("customer", "name"), "public.orders": ("price",)}


def test_a_query_may_read_nothing(shop):
    assert used(probe(shop, "SELECT 1 AS one")) == {}


def test_a_source_carries_types_keys_and_equality(shop):
    (source,) = probe(shop, "SELECT * FROM orders").sources
    assert source.primary_key == ("id",)
    assert [(c.name, c.type, c.not_null, c.has_equality) for c in source.columns] == [
        ("id", "integer", True, True),
        ("customer", "integer", False, True),
        ("price", "numeric(10,2)", False, True),
        ("note", "json", False, False),
    ]


def test_kinds_of_sources_are_told_apart(shop):
    shop.execute("CREATE MATERIALIZED VIEW mv AS SELECT id FROM orders")
    (source,) = probe(shop, "SELECT id FROM mv").sources
    assert (source.kind, source.captured) == ("MATVIEW", False)


def test_functions_come_with_their_volatility(shop):
    shop.execute("CREATE FUNCTION twice(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 * 2'")
    shop.execute("CREATE VIEW dice AS SELECT random() AS r FROM orders")
    probed = probe(shop, "SELECT twice(customer) AS t, now() AS at, upper('x') AS u, r FROM orders, dice")
    functions = probed.schema.functions
    assert {n: functions[n] for n in ("twice", "now", "upper", "random")} == {
        "twice": "i",
        "now": "n",
        "upper": "i",
        "random": "v",
    }
    assert len(probed.function_oids) == 1


@pytest.mark.parametrize(
    ("query", "words", "place"),
    [
        ("SELEC id FROM orders", "Syntax error", "line 1, column 1"),
        ("SELECT id\nFROM orders\nWHERE (price > 1", "Syntax error at end of input", "line 3, column 17"),
        ("SELECT id\n  FROM orders GROUPP BY id", "Syntax error", "line 2, column 22"),
        ("SELECT 'ä', 'ö' AS o,\n  nope FROM orders", 'Column "nope" does not exist', "line 2, column 3"),
        ("SELECT id FROM missing", 'Relation "missing" does not exist', "line 1, column 16"),
        ("SELECT id FROM nowhere.orders", "does not exist", "line 1, column 16"),
        ("SELECT nofunc(id) AS f FROM orders", "Function nofunc", "line 1, column 8"),
        ("SELECT customer FROM orders, customers", "ambiguous", "line 1, column 8"),
        ("SELECT id, sum(price) AS s FROM orders", "GROUP BY", "line 1, column 8"),
        ("SELECT id + 'x' AS s FROM orders", "Invalid input syntax", "line 1, column 13"),
        ("SELECT id FROM orders WHERE id = $1", "parameter", "line 1, column 34"),
        ("INSERT INTO orders VALUES (1)", "Syntax error", "line 1, column 1"),
    ],
)
def test_a_wrong_query_is_refused_with_its_place(shop, query, words, place):
    with pytest.raises(SyntaxFault, match=words) as refused:
        probe(shop, query)
    assert refused.value.place == place


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("SELECT 1 AS a\0", "NUL"),
        ("SELECT 1 AS a; DROP TABLE orders", "more than one statement"),
        ("SELECT id AS a FROM orders; COMMIT; DROP TABLE orders", "more than one statement"),
        ("SELECT 1", "Column 1 of the query has no name"),
        ("SELECT 1, 2", "More than one column of the query has no name"),
        ("SELECT id, id FROM orders", "specified more than once"),
        ("SELECT FROM orders", "has no columns"),
        ("SELECT id AS __pgt_x FROM orders", "reserved"),
        ("SELECT ROW(1, 2) AS r", "pseudo-type"),
        ("WITH gone AS (DELETE FROM orders RETURNING id) SELECT id FROM gone", "can't change data"),
        ("SELECT relname FROM pg_class", "whose changes can't be captured"),
        ("SELECT table_name FROM information_schema.tables", "whose changes can't be captured"),
        ("SELECT 1 / 0 AS x", "Division by zero"),
    ],
)
def test_what_cannot_be_a_stream_table_is_refused(shop, query, words):
    with pytest.raises(QueryError, match=words):
        probe(shop, query)
    assert shop.execute("SELECT to_regclass('orders') IS NOT NULL").fetchone() == (True,)


def test_temporary_tables_and_sequences_are_refused(shop):
    shop.execute("CREATE TEMP TABLE passing (a int)")
    shop.execute("CREATE SEQUENCE numbers")
    with pytest.raises(QueryError, match="temporary table"):
        probe(shop, "SELECT a FROM passing")
    with pytest.raises(QueryError, match=r"sequence public\.numbers"):
        probe(shop, "SELECT last_value FROM numbers")


def test_the_servers_hint_is_the_remedy(shop):
    with pytest.raises(SyntaxFault) as refused:
        probe(shop, "SELECT custmer FROM orders")
    assert "orders.customer" in str(refused.value.remedy)


def test_a_trailing_semicolon_and_comment_do_no_harm(shop):
    assert not probe(shop, "SELECT id FROM orders; -- all of them").canonical.endswith(";")


def test_a_source_without_select_right_is_refused(shop, admin_of):
    admin_of.execute("CREATE TABLE secret (id int, open int)")
    admin_of.execute("CREATE VIEW shown AS SELECT id FROM secret")
    (role,) = shop.execute("SELECT current_user").fetchone()
    admin_of.execute(f'GRANT SELECT ON shown TO "{role}"')
    admin_of.execute(f'GRANT SELECT (open) ON secret TO "{role}"')
    assert used(probe(shop, "SELECT open FROM secret")) == {"public.secret": ("open",)}
    for query in ("SELECT id FROM secret", "SELECT id FROM shown"):
        with pytest.raises(PermissionFault, match=r"may not read public\.secret"):
            probe(shop, query)


def test_a_star_over_a_stream_table_means_its_visible_columns(shop):
    shop.execute("CREATE TABLE st (__pgt_row_id bigint, n int, total numeric, __pgt_count bigint)")
    (relid,) = shop.execute("SELECT 'st'::regclass::oid::bigint").fetchone()
    records.insert(
        shop,
        schema="public",
        name="st",
        relid=relid,
        original_query="",
        defining_query="",
        storage=[
            StorageColumn("n", "integer"),
            StorageColumn("total", "numeric"),
            StorageColumn("__pgt_count", "bigint", "hidden"),
        ],
    )
    probed = probe(shop, "SELECT * FROM (SELECT * FROM st) s UNION ALL SELECT * FROM st")
    assert [c.name for c in probed.columns] == ["n", "total"]
    assert "__pgt_" not in probed.canonical
    (source,) = probed.sources
    assert (source.kind, source.key) == ("STREAM_TABLE", f"pgt_{source.pgt_id}")
    assert used(probed) == {"public.st": ("n", "total")}
    with pytest.raises(QueryError, match="reserved"):
        probe(shop, "SELECT n, __pgt_row_id FROM st")
    with pytest.raises(QueryError, match="internal column"):
        probe(shop, "SELECT n FROM st WHERE __pgt_row_id > 0")


def test_reading_a_partitioned_table_without_its_partitions_is_refused(conn):
    conn.execute("CREATE TABLE parted (a int) PARTITION BY LIST (a)")
    conn.execute("CREATE VIEW behind AS SELECT a FROM ONLY parted")
    for query in (
        "SELECT a FROM ONLY parted",
        "SELECT 1 AS b WHERE EXISTS (SELECT FROM ONLY parted)",
        "TABLE behind",
    ):
        with pytest.raises(QueryError, match=r"ONLY public\.parted, which is partitioned"):
            probe(conn, query)
    assert probe(conn, "SELECT a FROM parted").columns


def test_a_table_that_is_read_without_its_children_comes_with_them(conn):
    """Its own change is that of the table less those of its children, whose columns of the same names are read."""
    conn.execute("CREATE TABLE parent (a int, b int); CREATE TABLE child (c int) INHERITS (parent)")
    conn.execute("CREATE TABLE grandchild () INHERITS (child); CREATE VIEW behind AS SELECT a FROM ONLY parent")
    for query in ("SELECT a FROM ONLY parent", "TABLE behind"):
        probed = probe(conn, query)
        keys = {source.name: source.key for source in probed.sources}
        assert used(probed) == {"public.child": ("a",), "public.parent": ("a",)}
        assert probed.schema.heirs == {keys["parent"]: (keys["child"],)}
    assert used(probe(conn, "SELECT a FROM parent")) == {"public.parent": ("a",)}


def test_a_child_that_the_role_may_not_read_is_named(conn):
    """Refreshes count its rows."""
    conn.execute("CREATE TABLE parent (a int); CREATE TABLE child () INHERITS (parent)")
    conn.execute("REVOKE ALL ON child FROM CURRENT_USER")
    with pytest.raises(PermissionFault, match=r"may not read public\.child"):
        probe(conn, "SELECT a FROM ONLY parent")
