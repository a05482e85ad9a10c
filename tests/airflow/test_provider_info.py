"""What Airflow is told of the provider is valid, complete, and true."""

from __future__ import annotations

import json
from dataclasses import fields
from importlib import import_module
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from airflow.providers_manager import ProvidersManager

from airflow_provider_pgtrickle.engine.settings import Settings
from airflow_provider_pgtrickle.provider_info import get_provider_info

INFO = get_provider_info()


def modules() -> list[str]:
    return [
        module
        for kind in ("hooks", "operators", "sensors", "triggers")
        for entry in INFO[kind]
        for module in entry["python-modules"]
    ]


def classes() -> list[str]:
    return [
        *(entry["hook-class-name"] for entry in INFO["connection-types"]),
        *(entry["class-name"] for entry in INFO["task-decorators"]),
        *INFO["extra-links"],
        *INFO["notifications"],
        *INFO["cli"],
    ]


@pytest.mark.parametrize("schema", ["provider_info.schema.json"])
def test_it_fits_airflows_schema(schema: str) -> None:
    jsonschema.validate(INFO, json.loads((files("airflow") / schema).read_text()))


def test_connection_fields_fit_the_stricter_schema_of_provider_files() -> None:
    whole: dict[str, Any] = json.loads((files("airflow") / "provider.yaml.schema.json").read_text())
    jsonschema.validate(INFO["connection-types"], whole["properties"]["connection-types"])


@pytest.mark.parametrize("module", modules())
def test_every_module_it_names_is_there(module: str) -> None:
    import_module(module)


@pytest.mark.parametrize("path", classes())
def test_every_class_it_names_is_there(path: str) -> None:
    module, name = path.rsplit(".", 1)
    assert hasattr(import_module(module), name)


def test_airflow_finds_the_provider_and_its_connection_type() -> None:
    manager = ProvidersManager()
    assert "airflow-provider-pgtrickle" in manager.providers
    assert manager.hooks["pgtrickle"] is not None
    assert manager.hooks["pgtrickle"].hook_name == "pgtrickle"


def test_every_setting_is_an_option_of_the_configuration() -> None:
    options = INFO["config"]["pgtrickle"]["options"]
    assert list(options) == [field.name for field in fields(Settings)]
    for field in fields(Settings):
        said = options[field.name]["default"]
        assert getattr(Settings.load(**{field.name: said}), field.name) == field.default
