"""The names of change buffers and of their columns."""

from __future__ import annotations

import hashlib

ROW_ID = "__pgt_row_id"
CHANGES = "pgtrickle_changes"
"""The schema of the buffers and their trigger functions."""


def buffer_name(key: str) -> str:
    """Return the buffer's name for a source's key in a frontier: the oid of a table, `pgt_<id>` of a stream table.

    >>> buffer_name("16385"), buffer_name("pgt_3")
    ('changes_16385', 'changes_pgt_3')
    """
    return f"changes_{key}"


def buffer_column(prefix: str, column: str) -> str:
    """Return `new_<column>` or `old_<column>`, shortened the same way each time if PostgreSQL would truncate it.

    >>> buffer_column("new", "amount")
    'new_amount'
    """
    name = f"{prefix}_{column}"
    if len(name.encode()) <= 63:
        return name
    digest = hashlib.sha256(column.encode()).hexdigest()[:12]
    return f"{prefix}_{column.encode()[:46].decode(errors='ignore')}_{digest}"
