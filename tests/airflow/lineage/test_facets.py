"""OpenLineage facets of a refresh, from a real catalog and in the client's own classes."""

from __future__ import annotations

import pytest

from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult
from airflow_provider_pgtrickle.openlineage import facets
from tests.airflow.listened import CONN_ID, Catalog

QUERY = "SELECT customer, sum(total) AS spent FROM orders GROUP BY 1"
CANONICAL = " SELECT customer,\n    sum(total) AS spent\n   FROM public.orders\n  GROUP BY customer"


def shop(catalog: Catalog) -> None:
    catalog.connection.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, total numeric(10,2))")
    catalog.connection.execute("CREATE TABLE totals (customer int, spent numeric, __pgt_count bigint)")
    catalog.declare("totals", original_query=QUERY, defining_query=CANONICAL)
    catalog.connection.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET pgt_relid = 'totals'::regclass WHERE pgt_name = 'totals'"
    )
    catalog.capture("totals", "orders")


def test_a_refresh_tells_inputs_outputs_sql_columns_and_rows(catalog: Catalog) -> None:
    shop(catalog)
    result = RefreshResult("public.totals", "DIFFERENTIAL", rows_inserted=2, rows_updated=3, rows_deleted=1)
    found = facets(CONN_ID, {"public.totals": result})
    assert found is not None
    info = catalog.connection.info
    (source,), (target,) = found.inputs, found.outputs
    assert source.namespace == target.namespace == f"postgres://{info.host}:{info.port}"
    assert source.name == f"{info.dbname}.public.orders"
    assert target.name == f"{info.dbname}.public.totals"
    assert [(f.name, f.type) for f in source.facets["schema"].fields] == [
        ("id", "integer"),
        ("customer", "integer"),
        ("total", "numeric(10,2)"),
    ]
    assert [f.name for f in target.facets["schema"].fields] == ["customer", "spent"]
    spent = target.facets["columnLineage"].fields["spent"].inputFields
    assert [(i.name, i.field, i.transformations[0].subtype) for i in spent] == [
        (f"{info.dbname}.public.orders", "total", "AGGREGATION")
    ]
    assert target.outputFacets["outputStatistics"].rowCount == 6
    assert found.job_facets["sql"].query == QUERY


def test_it_is_an_event_that_openlineage_can_send(catalog: Catalog) -> None:
    from openlineage.client.serde import Serde

    shop(catalog)
    found = facets(CONN_ID, {"public.totals": RefreshResult("public.totals", "FULL", rows_inserted=1)})
    assert found is not None
    sent = "".join(Serde.to_json(dataset) for dataset in [*found.inputs, *found.outputs])
    assert '"inputFields"' in sent
    assert catalog.connection.info.password not in sent


def test_a_member_that_another_member_reads_is_no_input_of_their_unit(catalog: Catalog) -> None:
    shop(catalog)
    catalog.declare(
        "big", original_query="SELECT spent FROM totals", defining_query=" SELECT spent\n   FROM public.totals"
    )
    catalog.capture("big", "totals")
    found = facets(CONN_ID, {"public.totals": None, "public.big": None})
    assert found is not None
    assert [dataset.name.split(".", 1)[1] for dataset in found.inputs] == ["public.orders"]
    assert [dataset.name.split(".", 1)[1] for dataset in found.outputs] == ["public.totals", "public.big"]


@pytest.mark.parametrize("uri", ["postgresql://me:s3cret@127.0.0.1:1/shop"])
def test_lineage_that_cannot_be_had_fails_no_task(
    uri: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DOWN", uri)
    assert facets("down", {"public.totals": None}) is None
    assert "s3cret" not in "".join(capfd.readouterr())


def test_a_stream_table_that_is_gone_has_no_lineage(catalog: Catalog) -> None:
    assert facets(CONN_ID, {"public.totals": None}) is None
