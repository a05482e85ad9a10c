"""Checks that the two packages that share the folder `pyspark/` have one version."""

from __future__ import annotations

from importlib import metadata

from airflow_provider_pgtrickle.engine.errors import EnvironmentFault


def check_versions() -> str:
    """The version of PySpark; `EnvironmentFault` where `pyspark` and `pyspark-client` differ.

    Both unpack into one folder. Where they differ, the last one installed has overwritten part of the other, and
    Python functions fail on the executors with errors that name neither.
    """
    full, client = _version("pyspark"), _version("pyspark-client")
    if full is None and client is None:
        raise EnvironmentFault("PySpark is not installed", remedy="Install it with: pip install 'pyspark[connect]'.")
    if full and client and full != client:
        raise EnvironmentFault(
            f"pyspark {full} and pyspark-client {client} overwrite each other's files",
            remedy="Install one version of both: "
            f"pip install --force-reinstall --no-deps pyspark=={full} pyspark-client=={full}.",
        )
    return str(full or client)


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
