"""The columns of a change buffer."""

from __future__ import annotations

import hashlib

ROW_ID = "__pgt_row_id"


def buffer_column(prefix: str, column: str) -> str:
    """`new_<column>` or `old_<column>`, shortened the same way each time where PostgreSQL would cut it.

    >>> buffer_column("new", "amount")
    'new_amount'
    """
    name = f"{prefix}_{column}"
    if len(name.encode()) <= 63:
        return name
    digest = hashlib.sha256(column.encode()).hexdigest()[:12]
    return f"{prefix}_{column.encode()[:46].decode(errors='ignore')}_{digest}"
