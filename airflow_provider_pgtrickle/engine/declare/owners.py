"""Who declares a stream table: a bundle, a file in it and a graph.

Only one may, because two would undo what the other did, each with its next plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePath
from typing import Any

import psycopg

from airflow_provider_pgtrickle.engine.errors import UsageError

_ALL = """
SELECT st.pgt_schema || '.' || st.pgt_name, st.pgt_id, o.bundle, o.file, o.graph, o.removed_at
  FROM pgtrickle.pgt_owners o JOIN pgtrickle.pgt_stream_tables st USING (pgt_id)
 WHERE NOT st.is_hidden ORDER BY 1
"""
_TAKE = """
INSERT INTO pgtrickle.pgt_owners (pgt_id, bundle, file, graph) VALUES (%s, %s, %s, %s)
ON CONFLICT (pgt_id) DO UPDATE SET bundle = excluded.bundle, file = excluded.file, graph = excluded.graph,
    declared_at = now(), removed_at = NULL
"""


@dataclass(frozen=True)
class Owner:
    """The place of a declaration."""

    bundle: str
    """Empty where the file is in no bundle; its path is then absolute."""
    file: str
    graph: str

    def __str__(self) -> str:
        return f"{self.graph} in {self.file}" + (f" of bundle {self.bundle}" if self.bundle else "")

    def is_same(self, other: Owner) -> bool:
        """Whether the two are one place. A file that was run by hand, in no bundle, is known by the end of its path."""
        if self == other:
            return True
        one, two = PurePath(self.file).parts, PurePath(other.file).parts
        least = min(len(one), len(two))
        unknown = not self.bundle or not other.bundle
        return self.graph == other.graph and unknown and one[-least:] == two[-least:]


@dataclass(frozen=True)
class Owned:
    """A stream table's owner as the catalog has it."""

    pgt_id: int
    owner: Owner
    removed_at: datetime | None = None


@dataclass(frozen=True)
class Claim:
    """Somebody's wish to be the owner."""

    owner: Owner
    moved_from: str | None = None
    """The file or the graph that declared the table until now, if its declaration was moved."""
    is_gone: Callable[[str], bool] = field(default=lambda _: False, compare=False)
    """Whether a file of the bundle is there no more, which makes the same graph in another one a moved graph."""

    def replaces(self, owned: Owned | None) -> bool:
        """Whether the catalog has to be written. A file run by hand doesn't hide the bundle that it is in otherwise."""
        if owned is None or owned.removed_at is not None or not self.owner.is_same(owned.owner):
            return True
        return bool(self.owner.bundle) and self.owner != owned.owner

    def judged(self, name: str, owned: Owned | None) -> str | None:
        """The transfer in words, or None if there is none; an error if the table has another owner."""
        if owned is None or (self.owner.is_same(owned.owner) and owned.removed_at is None):
            return None
        before = owned.owner
        moved = (
            owned.removed_at is not None
            or self.moved_from in (before.file, before.graph)
            or (before.graph == self.owner.graph and before.bundle == self.owner.bundle and self.is_gone(before.file))
        )
        if not moved:
            raise UsageError(
                f"It is declared twice: by {before}, and by {self.owner}",
                stream_table=name,
                remedy=f"Remove one of them, or say that it was moved: moved_from={before.file!r}.",
            )
        return f"{name} is declared by {self.owner} from now on; until now by {before}"


def owners(conn: psycopg.Connection[Any]) -> dict[str, Owned]:
    """The owners of all stream tables that have one, by `schema.name`."""
    return {
        name: Owned(pgt_id, Owner(bundle, file, graph), removed)
        for name, pgt_id, bundle, file, graph, removed in conn.execute(_ALL)
    }


def take(conn: psycopg.Connection[Any], name: str, pgt_id: int, claim: Claim) -> str | None:
    """Make the claimant the owner, or raise if somebody else is; the transfer in words, if it is one."""
    owned = owners(conn).get(name)
    told = claim.judged(name, owned)
    if claim.replaces(owned):
        conn.execute(_TAKE, [pgt_id, claim.owner.bundle, claim.owner.file, claim.owner.graph])
    return told


def refuse_stranger(conn: psycopg.Connection[Any], name: str) -> None:
    """Raise if a file declares the table, because its next plan would undo what is declared elsewhere."""
    owned = owners(conn).get(name)
    if owned is not None and owned.removed_at is None:
        raise UsageError(
            f"It is declared by {owned.owner}, whose next plan would undo this",
            stream_table=name,
            remedy="Change it there, or remove it there first.",
        )


def removed(owned: Mapping[str, Owned], owner: Owner, declared: Collection[str]) -> dict[str, Owned]:
    """The tables of this owner that it declares no more."""
    return {name: o for name, o in owned.items() if owner.is_same(o.owner) and name not in declared}


def mark_removed(conn: psycopg.Connection[Any], ids: Collection[int]) -> None:
    conn.execute(
        "UPDATE pgtrickle.pgt_owners SET removed_at = now() WHERE pgt_id = ANY(%s) AND removed_at IS NULL", [list(ids)]
    )
