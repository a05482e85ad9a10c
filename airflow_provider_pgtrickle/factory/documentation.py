"""Documentation that the UI shows for a DAG and a task: the dependency tree, the schedule, the SQL."""

from __future__ import annotations

from airflow_provider_pgtrickle.factory.components import Component
from airflow_provider_pgtrickle.operators.unit import Unit
from airflow_provider_pgtrickle.stream_table import StreamTable

_SHORT = "public."


def of_component(component: Component) -> str:
    """Markdown of the whole component: a tree for each table that nobody reads."""
    leaves = [name for name in component.schedules if not component.graph.downstream(name)]
    trees = "\n".join(_tree(component, leaf) for leaf in leaves)
    rows = "\n".join(
        f"| `{_short(str(table.qualified))}` | {_schedule(component, table)} | {table.refresh_mode} "
        f"| {_one_line(table.description)} |"
        for table in component.tables
    )
    return (
        f"### Stream tables\n\n| table | schedule | mode | |\n| --- | --- | --- | --- |\n{rows}\n\n"
        f"### What reads what\n\n```\n{trees}\n```\n"
    )


def of_unit(component: Component, unit: Unit) -> str:
    """Markdown of one task: each table's tree and SQL."""
    return "\n".join(_of_table(component, table) for table in unit.tables)


def _of_table(component: Component, table: StreamTable) -> str:
    name = str(table.qualified)
    head = f"### {_short(name)}\n\n"
    text = f"{table.description.strip()}\n\n" if table.description else ""
    return (
        f"{head}{text}Schedule {_schedule(component, table)}, mode {table.refresh_mode}.\n\n"
        f"```\n{_tree(component, name)}\n```\n\n{_fenced(table.query)}\n"
    )


def _schedule(component: Component, table: StreamTable) -> str:
    return "none" if table.is_immediate else str(component.schedules[str(table.qualified)])


def _fenced(sql: str) -> str:
    # The fence is longer than any in the SQL, so that a string literal can't close it.
    fence = "```"
    while fence in sql:
        fence += "`"
    return f"{fence}sql\n{sql.strip()}\n{fence}"


def _tree(component: Component, name: str) -> str:
    """The tree, indented. Each subtree is shown once, because a deep diamond would repeat it many times."""
    lines: list[str] = []
    shown: set[str] = set()
    to_visit = [(0, name)]
    while to_visit:
        depth, current = to_visit.pop()
        node = component.graph.nodes.get(current)
        again = current in shown and node is not None
        lines.append(f"{'  ' * depth}{_short(current)}{'' if node else ' (base table)'}{' …' if again else ''}")
        if node is not None and not again:
            shown.add(current)
            to_visit.extend((depth + 1, source) for source in sorted(node.sources, reverse=True))
    return "\n".join(lines)


def _short(name: str) -> str:
    return name.removeprefix(_SHORT)


def _one_line(text: str | None) -> str:
    return " ".join((text or "").replace("|", "\\|").split())
