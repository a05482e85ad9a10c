"""Imports point one way. The order and what each layer may know stand here, once."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent.parent / "airflow_provider_pgtrickle"

#: From the ground up; a module may import its own layer and those above it in this list.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("engine.errors", "engine.settings", "engine.names", "engine.schedule", "engine.progress"),
    ("engine.dvm",),
    ("engine.graph",),
    ("engine.catalog", "engine.capture"),
    # Refreshing a changed definition declares it anew.
    ("engine.declare",),
    ("engine.refresh",),
    ("engine.immediate",),
    ("engine.spark",),
    ("errors", "health", "client"),
    ("requests",),
    ("cli", "embedded"),
    # Airflow's side.
    ("stream_table", "provider_info"),
    ("hooks", "links", "lineage", "openlineage", "metrics", "assets", "backends"),
    ("triggers",),
    ("operators", "sensors", "notifications", "decorators", "web"),
    # What a DAG file calls, and the entry points.
    ("factory",),
    ("airflow_cli", "plugin", "demo", "__init__", "engine"),
)
RANK = {module: rank for rank, layer in enumerate(LAYERS) for module in layer}
AIRFLOW_FROM = RANK["stream_table"]

#: Who may know what of the outside world, lazily or not.
DRIVERS = {"psycopg", "psycopg2", "asyncpg", "pyarrow"}
ENGINES = {"pyspark", "py4j"}
#: `settings` asks Airflow's configuration only where Airflow already runs.
EXCEPTIONS = {("engine.settings", "airflow")}

FILES = sorted(PACKAGE.rglob("*.py"))


def layer_of(path: Path) -> str:
    return named(path.relative_to(PACKAGE).with_suffix("").parts)


def named(parts: Sequence[str]) -> str:
    """The layer of a module: within the engine its folder there."""
    if parts[0] == "engine":
        return ".".join(parts[:2]) if len(parts) > 1 and parts[1] != "__init__" else "engine"
    return parts[0]


def imports(path: Path) -> Iterator[str]:
    """Every module named by an import statement of the file, at its top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def inner(path: Path) -> set[str]:
    """The package's own modules that the file imports, by their first name."""
    names = {named(name.split(".")[1:]) for name in imports(path) if name.startswith(f"{PACKAGE.name}.")}
    names -= {"__version__"}
    return {name if name in RANK else "__init__" for name in names}


def outer(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(path)} - {PACKAGE.name}


def reached_by(layer: str) -> set[str]:
    """The layer and everything of the package that importing it brings along."""
    reached: set[str] = set()
    waiting = {layer}
    while waiting:
        reached |= waiting
        waiting = {name for path in FILES if layer_of(path) in waiting for name in inner(path)} - reached
    return reached


def test_every_module_has_its_place_in_the_layers() -> None:
    assert {layer_of(path) for path in FILES} - set(RANK) == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down_only(path: Path) -> None:
    rank = RANK.get(layer_of(path), len(LAYERS))
    assert {name for name in inner(path) if RANK[name] > rank} == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_airflow_side_knows_airflow(path: Path) -> None:
    layer = layer_of(path)
    known = {name for name in outer(path) if (layer, name) not in EXCEPTIONS}
    if RANK.get(layer, AIRFLOW_FROM) < AIRFLOW_FROM:
        assert "airflow" not in known


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_below_the_execution_knows_spark(path: Path) -> None:
    if RANK.get(layer_of(path), len(LAYERS)) < RANK["engine.spark"]:
        assert outer(path) & ENGINES == set()


@pytest.mark.parametrize("pure", ["engine.dvm", "engine.graph", "engine.schedule", "engine.errors"])
def test_the_pure_parts_reach_no_driver_even_indirectly(pure: str) -> None:
    layers = reached_by(pure)
    known = {name for path in FILES if layer_of(path) in layers for name in outer(path)}
    assert known & (DRIVERS | ENGINES) == set()


def test_spark_applications_import_no_airflow() -> None:
    """They run on drivers that have the compute package alone."""
    for path in sorted((PACKAGE.parent / "spark_apps").rglob("*.py")):
        assert "airflow" not in outer(path)
        assert {name for name in inner(path) if RANK[name] >= AIRFLOW_FROM} == set()


def modules() -> dict[str, Path]:
    """All modules of ours, a package standing for what its `__init__` says."""
    parts = {path: path.relative_to(PACKAGE.parent).with_suffix("").parts for path in FILES}
    return {".".join(p[:-1] if p[-1] == "__init__" else p): path for path, p in parts.items()}


def imported(path: Path, known: Collection[str]) -> set[str]:
    """The modules that a file imports: at its top, inside functions, and for its type annotations alone."""
    return {name if name in known else name.rpartition(".")[0] for name in imports(path)} & set(known)


def cycles(graph: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """The largest sets of modules each of which imports all the others, if through still others."""
    found: set[frozenset[str]] = set()
    reached = {module: reachable(graph, module) for module in graph}
    for module, others in reached.items():
        if module in others:
            found.add(frozenset(other for other in others if module in reached[other]))
    return found


def reachable(graph: Mapping[str, set[str]], module: str) -> set[str]:
    reached: set[str] = set()
    waiting = set(graph[module])
    while waiting:
        reached |= waiting
        waiting = set().union(*(graph[name] for name in waiting)) - reached
    return reached


def test_there_are_no_import_cycles_not_even_for_type_annotations() -> None:
    known = modules()
    assert cycles({name: imported(path, known) for name, path in known.items()}) == set()


def test_a_cycle_is_found_with_all_of_its_modules() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}}) == {frozenset("bc"), frozenset("d")}
