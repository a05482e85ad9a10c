"""A namer makes column names that are unique within one query, and short enough for PostgreSQL."""

from __future__ import annotations


class Namer:
    """Hands out `customer_id`, then `customer_id_2`, …

    >>> take = Namer()
    >>> take("id"), take("id"), take("name")
    ('id', 'id_2', 'name')
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __call__(self, wanted: str) -> str:
        stem = wanted.encode()[:50].decode(errors="ignore") or "c"
        name, n = stem, 1
        while name in self._taken:
            n += 1
            name = f"{stem}_{n}"
        self._taken.add(name)
        return name
