"""What `make up` says once it runs: where to look, and with what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_provider_pgtrickle.demo import live


def test_it_says_where_to_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "live.json"
    dsn = "postgresql://shop:pw@127.0.0.1:5433/shop"
    state.write_text(json.dumps({"url": "http://127.0.0.1:8080", "dsn": dsn, "airflow": str(tmp_path)}))
    (tmp_path / "simple_auth_manager_passwords.json.generated").write_text('{"admin": "generated"}')
    live._announce(state)
    said = capsys.readouterr().out
    assert "Airflow:  http://127.0.0.1:8080\nlogin:    admin\npassword: generated\n" in said
    assert "page:     Browse, Stream tables, with the connection shop_pg\n" in said
    assert f"database: {dsn}\n" in said
    assert "PGTRICKLE_DSN with this address lets `pgtrickle status` and psql look at it. `make down` stops it." in said
