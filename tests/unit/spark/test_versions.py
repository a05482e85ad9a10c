"""The two packages in one folder."""

from __future__ import annotations

from importlib import metadata

import pytest

from airflow_provider_pgtrickle.engine.errors import EnvironmentFault
from airflow_provider_pgtrickle.engine.spark.versions import check_versions


def test_equal_versions_are_told():
    assert check_versions() == metadata.version("pyspark") == metadata.version("pyspark-client")


def test_a_client_of_another_version_is_refused_with_the_mend(tmp_path, monkeypatch):
    """A second distribution's metadata comes first on the path, as a later install would leave it."""
    folder = tmp_path / "pyspark_client-3.9.9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: pyspark-client\nVersion: 3.9.9\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(EnvironmentFault, match=r"pyspark-client 3\.9\.9 overwrite.*pip install .* pyspark-client=="):
        check_versions()
