"""Beside Cosmos: the assets that a graph from dbt waits for are those that Cosmos updates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from airflow_provider_pgtrickle.factory import dbt

ROOT = Path(__file__).parents[3]
#: Cosmos alone; the Airflow that it runs on is the tests'.
PACKAGES = ROOT / ".tools" / "cosmos"

_TOLD = """
import json, sys
from pathlib import Path
from cosmos.config import ProfileConfig
from cosmos.dataset import compute_model_outlet_uris, get_dataset_namespace

manifest, profiles = map(Path, sys.argv[1:])
profile = ProfileConfig(profile_name="shop", target_name="dev", profiles_yml_filepath=profiles)
print(json.dumps(compute_model_outlet_uris(manifest, get_dataset_namespace(profile))))
"""
_PROFILE = {"type": "postgres", "host": "db.example.org", "port": 5433, "user": "u", "password": "p", "dbname": "shop"}


def node(name: str, kind: str = "model", materialized: str = "table", **more: Any) -> dict[str, Any]:
    return {
        "resource_type": kind,
        "name": name,
        "alias": name,
        "database": "shop",
        "schema": "analytics",
        "original_file_path": f"{name}.sql",
        "config": {"materialized": materialized},
        **more,
    }


def test_what_a_graph_waits_for_is_what_cosmos_updates(tmp_path: Path) -> None:
    awaited = [
        node("known"), node("codes", "seed", "seed"), node("slowly", "snapshot", "snapshot"), node("größe_2"),
        node("renamed", alias="other name", schema="my schema"),
    ]  # fmt: skip
    keys = [f"{one['resource_type']}.shop.{one['name']}" for one in awaited]
    totals = node("totals", materialized="stream_table", compiled_code="select 1 as a", depends_on={"nodes": keys})
    nodes = dict(zip(keys, awaited, strict=True)) | {"model.shop.totals": totals}
    manifest = tmp_path / "target" / "manifest.json"
    manifest.parent.mkdir()
    manifest.write_text(json.dumps({"nodes": nodes}))
    profiles = tmp_path / "profiles.yml"
    profiles.write_text(json.dumps({"shop": {"target": "dev", "outputs": {"dev": _PROFILE}}}))
    told = _cosmos(manifest, profiles)
    mine = dbt.read(tmp_path).assets("postgres://db.example.org:5433/shop")
    assert len(mine) == len(awaited)
    assert sorted(mine) == sorted(uri for key in keys for uri in told[key])


def _cosmos(*files: Path) -> dict[str, list[str]]:
    (packages,) = PACKAGES.glob("lib/python*/site-packages")
    done = subprocess.run(
        [sys.executable, "-c", _TOLD, *map(str, files)],
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Airflow's own log stands before it.
    uris: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return uris
