"""Puts our lineage into OpenLineage's classes. This is the only file that needs OpenLineage's client."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import psycopg

from airflow_provider_pgtrickle.engine.catalog.database import Database
from airflow_provider_pgtrickle.engine.errors import PgTrickleError
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult
from airflow_provider_pgtrickle.hooks.pgtrickle import PgTrickleHook
from airflow_provider_pgtrickle.lineage import Lineage, Origin, Relation, describe

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

_log = logging.getLogger(__name__)


def facets(postgres_conn_id: str, results: Mapping[str, RefreshResult | None]) -> OperatorLineage | None:
    """What an operator returns from `get_openlineage_facets_on_complete`: the lineage of all tables it refreshed.

    `results` are keyed by stream table, and None if only the declaration changed. Lineage never fails a task: errors
    are logged, and the result is then None.
    """
    try:
        database = Database(PgTrickleHook(postgres_conn_id=postgres_conn_id).dsn)
        found: list[tuple[Lineage, RefreshResult | None]] = []
        with database.connect(autocommit=True, application_name="pgtrickle lineage") as connection:
            for name, result in results.items():
                described = describe(connection, QualifiedName.parse(name))
                if described is not None:
                    found.append((described, result))
            info = connection.info
            address = f"{info.host}:{info.port}"
            dbname = info.dbname
    except (PgTrickleError, psycopg.Error) as error:
        _log.warning("No lineage for %s: %s", ", ".join(results), type(error).__name__)
        return None
    return operator_lineage(found, namespace=f"postgres://{address}", database=dbname) if found else None


def operator_lineage(
    found: Sequence[tuple[Lineage, RefreshResult | None]], *, namespace: str, database: str
) -> OperatorLineage:
    """Inputs and outputs named as OpenLineage's naming rules say: `postgres://host:port`, `database.schema.table`."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset
    from openlineage.client.facet_v2 import (
        column_lineage_dataset,
        output_statistics_output_dataset,
        schema_dataset,
        sql_job,
    )

    def dataset_name(name: QualifiedName) -> str:
        return f"{database}.{name.schema}.{name.name}"

    def schema(relation: Relation) -> schema_dataset.SchemaDatasetFacet:
        return schema_dataset.SchemaDatasetFacet(
            fields=[schema_dataset.SchemaDatasetFacetFields(name=n, type=t) for n, t in relation.columns]
        )

    def input_field(origin: Origin) -> column_lineage_dataset.InputField:
        return column_lineage_dataset.InputField(
            namespace=namespace,
            name=dataset_name(origin.relation),
            field=origin.column,
            transformations=[
                column_lineage_dataset.Transformation(type="DIRECT", subtype=origin.how, description="", masking=False)
            ],
        )

    def columns(described: Lineage) -> column_lineage_dataset.ColumnLineageDatasetFacet:
        return column_lineage_dataset.ColumnLineageDatasetFacet(
            fields={
                column: column_lineage_dataset.Fields(inputFields=[input_field(origin) for origin in origins])
                for column, origins in described.origins.items()
            }
        )

    def statistics(
        result: RefreshResult,
    ) -> output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet:
        written = result.rows_inserted + result.rows_updated + result.rows_deleted
        return output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=written)

    outputs = {described.output.name for described, _ in found}
    inputs = {
        relation.name: relation
        for described, _ in found
        for relation in described.inputs
        # A member of the unit that another member reads is an output here, and no input.
        if relation.name not in outputs
    }
    statements = [described.sql.strip().rstrip(";") for described, _ in found]
    return OperatorLineage(
        inputs=[
            InputDataset(namespace=namespace, name=dataset_name(name), facets={"schema": schema(relation)})
            for name, relation in sorted(inputs.items())
        ],
        outputs=[
            OutputDataset(
                namespace=namespace,
                name=dataset_name(described.output.name),
                facets={"schema": schema(described.output), "columnLineage": columns(described)},
                outputFacets={"outputStatistics": statistics(result)} if result is not None else {},
            )
            for described, result in found
        ],
        job_facets={"sql": sql_job.SQLJobFacet(query=";\n".join(statements))},
    )
