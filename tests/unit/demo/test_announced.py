"""What `make up` says when all is there: where to look, and with what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_provider_pgtrickle.demo.live import _announce


def test_it_says_where_to_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "simple_auth_manager_passwords.json.generated").write_text('{"admin": "s3cret"}')
    state = {"url": "http://localhost:8080", "airflow": str(tmp_path), "dsn": "postgresql://app@localhost/shop"}
    (tmp_path / "state.json").write_text(json.dumps(state))
    _announce(tmp_path / "state.json")
    told = capsys.readouterr().out
    assert ("http://localhost:8080" in told, "admin" in told, "s3cret" in told) == (True, True, True)
    # The page in Airflow and its connection; the database for psql and the command line.
    assert "Stream tables, with the connection shop_pg" in told
    assert "postgresql://app@localhost/shop" in told
    assert "PGTRICKLE_DSN with this address" in told
