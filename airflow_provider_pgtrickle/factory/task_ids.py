"""Ids of DAGs and tasks: the tables' names as far as Airflow allows them, never two the same."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from airflow_provider_pgtrickle.engine.names import QualifiedName

_NOT_ALLOWED = re.compile(r"[^\w.]", re.ASCII)
#: Airflow allows 250 characters; the rest is room for a group's or a mapped task's suffix.
_LONGEST = 200
#: Tasks of the DAG's own.
RESERVED = frozenset({"plan", "refresh", "outcomes"})


def plain(name: QualifiedName, default_schema: str = "public") -> str:
    """`totals`, or `sales.totals` outside the default schema.

    >>> plain(QualifiedName("public", "totals")), plain(QualifiedName("sales", "My totals"))
    ('totals', 'sales.My_totals.90541262')
    """
    text = name.name if name.schema == default_schema and name.name not in RESERVED else str(name)
    return _fitting(text)


def joined(names: Sequence[QualifiedName], default_schema: str = "public") -> str:
    """A unit's id: its tables joined by `__`."""
    return _fitting("__".join(plain(name, default_schema) for name in names))


def _fitting(text: str) -> str:
    clean = _NOT_ALLOWED.sub("_", text)
    if clean == text and len(text) <= _LONGEST:
        return text
    # What was replaced or cut off is told apart by a digest.
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{clean[: _LONGEST - 9]}.{digest}"
