"""Stream tables from a dbt project: models with `materialized: stream_table`, as its manifest has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

from airflow_provider_pgtrickle.engine.errors import PgTrickleError, UsageError
from airflow_provider_pgtrickle.engine.graph import Graph, Node, selection
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.stream_table import StreamTable

MATERIALIZED = "stream_table"
#: What a model may say of its stream table, in its config or in the config's `meta`.
_OPTIONS = {f.name for f in fields(StreamTable)} - {"name", "query", "description", "depends_on"}
#: Models that are no tables: what they read is read through them.
_LOOKED_THROUGH = ("view", "ephemeral")
#: Anything may be the name of a model, but for the selection each has a schema.
_HOME = "dbt"


@dataclass(frozen=True)
class Project:
    """The stream tables of a project."""

    folder: Path
    tables: Mapping[str, StreamTable]
    """By the model's name."""
    awaited: tuple[QualifiedName, ...]
    """The tables of other models that they read, which somebody else builds."""

    def assets(self, database_uri: str) -> list[str]:
        """The addresses of the awaited tables' assets, as Cosmos writes them."""
        home = database_uri.rstrip("/")
        return [f"{home}/{quote(table.schema, safe='')}/{quote(table.name, safe='')}" for table in self.awaited]


def read(path: Path, select: str | Iterable[str] | None = None, exclude: str | Iterable[str] | None = None) -> Project:
    """The project in a folder, or that of a manifest; `select` and `exclude` are terms as dbt has them."""
    file = path / "target" / "manifest.json" if path.is_dir() else path
    nodes = _nodes(file)
    streams = {key: node for key, node in nodes.items() if _materialized(node) == MATERIALIZED}
    if not streams:
        raise UsageError(
            f"{file} has no model with materialized: {MATERIALIZED}",
            remedy=f"Write {{{{ config(materialized='{MATERIALIZED}') }}}} into one, and run: dbt compile.",
        )
    chosen = _chosen(streams, nodes, select, exclude)
    tables: dict[str, StreamTable] = {}
    awaited: set[QualifiedName] = set()
    for key in chosen:
        read_tables = set(_tables_read(nodes, key))
        awaited |= {_name(nodes[other]) for other in read_tables - set(chosen)}
        above = [_name(nodes[other]).quoted for other in sorted(read_tables & set(chosen))]
        tables[streams[key]["name"]] = _stream_table(file, streams[key], above)
    return Project(_folder(file), tables, tuple(sorted(awaited)))


def _nodes(file: Path) -> dict[str, Any]:
    """What has a table or may have one: models, seeds and snapshots that are enabled."""
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        nodes = dict(manifest["nodes"])
    except FileNotFoundError:
        raise UsageError(
            f"There is no {file}", remedy="Run dbt compile in the project, and ship target/manifest.json with it."
        ) from None
    except (ValueError, KeyError, TypeError, OSError):
        raise UsageError(f"{file} is no manifest of dbt", remedy="Run: dbt compile.") from None
    return {k: n for k, n in nodes.items() if n.get("resource_type") in ("model", "seed", "snapshot")}


def _materialized(node: Mapping[str, Any]) -> str:
    return str(node.get("config", {}).get("materialized", ""))


def _name(node: Mapping[str, Any]) -> QualifiedName:
    return QualifiedName(node["schema"], node.get("alias") or node["name"])


def _tables_read(nodes: Mapping[str, Any], key: str) -> Iterator[str]:
    """The nodes whose tables it reads. dbt knows of no circles."""
    for other in nodes[key].get("depends_on", {}).get("nodes", ()):
        if other not in nodes:
            continue  # a source, which no model builds
        if _materialized(nodes[other]) in _LOOKED_THROUGH:
            yield from _tables_read(nodes, other)
        else:
            yield other


def _chosen(
    streams: Mapping[str, Any],
    nodes: Mapping[str, Any],
    select: str | Iterable[str] | None,
    exclude: str | Iterable[str] | None,
) -> list[str]:
    by_name = {f"{_HOME}.{node['name']}": key for key, node in streams.items()}
    name_of = {key: name for name, key in by_name.items()}
    graph = Graph.build(
        Node(name, frozenset(name_of[other] for other in _tables_read(nodes, key) if other in name_of))
        for name, key in by_name.items()
    )
    tags = {name: streams[key].get("tags", ()) for name, key in by_name.items()}
    found = frozenset(by_name) if select is None else selection.select(graph, tags, select, _HOME)
    if exclude is not None:
        found -= selection.select(graph, tags, exclude, _HOME)
    if not found:
        raise UsageError("No stream table of the dbt project is selected", remedy="Check select and exclude.")
    return sorted(by_name[name] for name in found)


def _stream_table(file: Path, node: Mapping[str, Any], above: list[str]) -> StreamTable:
    query = node.get("compiled_code")
    if not query:
        raise UsageError(
            f"{file} has no SQL of the model {node['name']}",
            remedy="Run dbt compile; dbt parse isn't enough.",
        )
    config = node["config"]
    meta = config.get("meta") or {}
    given = {name: config.get(name, meta.get(name)) for name in sorted(_OPTIONS)}
    options = {name: value for name, value in given.items() if value is not None}
    try:
        return StreamTable(
            _name(node).quoted,
            query.strip().rstrip(";").rstrip(),
            description=node.get("description") or None,
            depends_on=tuple(above),
            **options,
        )
    except PgTrickleError as error:
        where = f"{node.get('original_file_path', node['name'])}, {error.place}" if error.place else None
        place = where or node.get("original_file_path")
        raise type(error)(error.message, place=place, remedy=error.remedy, stream_table=node["name"]) from None


def _folder(file: Path) -> Path:
    """The project that a manifest lies in: beside its folder target."""
    return file.parent.parent if file.parent.name == "target" else file.parent
