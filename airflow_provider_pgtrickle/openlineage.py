"""Puts our lineage into OpenLineage's classes. This is the only file that needs OpenLineage's client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.refresh.history import RefreshResult

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_provider_pgtrickle.lineage import Lineage, Origin, Relation


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
