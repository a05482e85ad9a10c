"""The stream tables of the folder `sql_shop`, one .sql file each, as Airflow DAGs."""

from __future__ import annotations

from airflow_provider_pgtrickle import StreamTableGraph

StreamTableGraph.from_folder(
    "sql_shop", "sql_shop/", postgres_conn_id="shop_pg", spark_conn_id="spark_default", tags=["example"]
).register(globals())
