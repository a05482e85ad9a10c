"""What Airflow asks a provider: its connection type, classes, settings and commands."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from airflow_provider_pgtrickle import __version__
from airflow_provider_pgtrickle.engine.settings import Settings

_PACKAGE = "airflow_provider_pgtrickle"
_NAME = "pgtrickle"
_TYPES = {int: "integer", float: "float", bool: "boolean", str: "string"}


def get_provider_info() -> dict[str, Any]:
    """The provider's metadata. The plugin is an entry point of its own: named here too, it would break."""
    return {
        "package-name": "airflow-provider-pgtrickle",
        "name": _NAME,
        "description": (
            "Stream tables for any PostgreSQL: declared in Airflow, kept by differences, computed by PostgreSQL and"
            " Spark."
        ),
        "versions": [__version__],
        "integrations": [
            {
                "integration-name": _NAME,
                "external-doc-url": "https://www.postgresql.org/",
                "tags": ["software"],
            }
        ],
        "connection-types": [
            {
                "connection-type": "pgtrickle",
                "hook-name": _NAME,
                "hook-class-name": f"{_PACKAGE}.hooks.pgtrickle.PgTrickleHook",
                "ui-field-behaviour": {
                    "relabeling": {"schema": "Database"},
                    "placeholders": {"host": "db.example.org", "port": "5432", "schema": "shop"},
                },
                "conn-fields": _connection_fields(),
            }
        ],
        "hooks": [_modules("hooks.pgtrickle")],
        "operators": [
            _modules(
                "operators.cleanup",
                "operators.dbt",
                "operators.declare",
                "operators.plan",
                "operators.refresh",
                "operators.refresh_graph",
                "operators.requests",
                "operators.unit_state",
                "operators.verify",
            )
        ],
        "sensors": [_modules("sensors.buffer", "sensors.freshness")],
        "triggers": [
            _modules(
                "triggers.alert",
                "triggers.buffer",
                "triggers.freshness",
                "triggers.pending",
                "triggers.refreshed",
                "triggers.requests",
            )
        ],
        "task-decorators": [
            {"name": "stream_table", "class-name": f"{_PACKAGE}.decorators.stream_table.stream_table_task"}
        ],
        "extra-links": [
            f"{_PACKAGE}.links.page.RefreshHistoryLink",
            f"{_PACKAGE}.links.page.ExplainLink",
            f"{_PACKAGE}.links.asset.AssetLink",
        ],
        "notifications": [f"{_PACKAGE}.notifications.alert.AlertNotifier"],
        "cli": [f"{_PACKAGE}.airflow_cli.get_pgtrickle_cli_commands"],
        "config": {
            "pgtrickle": {
                "description": "Stream tables. Each option can also be set by PGTRICKLE_<NAME>, or by a connection's "
                "extra of the same name.\n",
                "options": _options(),
            }
        },
    }


def _modules(*names: str) -> dict[str, Any]:
    return {"integration-name": _NAME, "python-modules": [f"{_PACKAGE}.{name}" for name in names]}


def _options() -> dict[str, Any]:
    """`[pgtrickle]`, from the one list of settings."""
    return {
        spec.name: {
            "description": spec.metadata["description"],
            "version_added": "0.1.0",
            "type": _TYPES[spec.metadata["kind"]],
            "example": None,
            "default": None if spec.default is None else str(spec.default),
        }
        for spec in fields(Settings)
    }


def _connection_fields() -> dict[str, Any]:
    return {
        "sslmode": {
            "label": "SSL mode",
            "description": "How libpq uses TLS; empty: prefer.",
            "schema": {
                "type": ["string", "null"],
                "enum": ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"],
            },
        },
        "sslrootcert": {
            "label": "Root certificate",
            "description": "Path of the authority's certificate on the workers.",
            "schema": {"type": ["string", "null"]},
        },
        "jdbc_jar": {
            "label": "JDBC driver",
            "description": "Path of the PostgreSQL JDBC driver on the workers; empty: found by itself.",
            "schema": {"type": ["string", "null"]},
        },
        "lock_timeout_seconds": {
            "label": "Lock timeout (s)",
            "description": "Longest wait for a lock while declaring or applying; empty: the setting.",
            "schema": {"type": ["integer", "null"], "minimum": 1},
        },
    }
