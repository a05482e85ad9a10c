"""A DAG that follows a stream table: it runs when rows of `country_report` really changed, and only then."""

from __future__ import annotations

from airflow.sdk import DAG, task
from shop import country_report

with DAG("shop_consumer", schedule=[country_report.asset], catchup=False, tags=["example"]) as dag:

    @task
    def tell(triggering_asset_events=None) -> list[dict]:
        """What changed, as the asset's events say it."""
        told = []
        for asset, events in (triggering_asset_events or {}).items():
            for event in events:
                print(f"{asset.uri}: {event.extra}")
                told.append(event.extra)
        return told

    tell()
