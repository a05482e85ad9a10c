"""OVER w is replaced by what w stands for, so that every window itself says how it is partitioned and ordered."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.schema import Schema


def named_windows(query: exp.Query, schema: Schema) -> exp.Query:
    """
    SELECT sum(a) OVER w FROM t WINDOW w AS (PARTITION BY g)  →  SELECT sum(a) OVER (PARTITION BY g) FROM t
    """
    for select in query.find_all(exp.Select):
        named = {w.name: w for w in select.args.get("windows") or []}
        if not named:
            continue
        for window in list(select.find_all(exp.Window)):
            if window.parent_select is select and window.parent is not select:
                _write_out(window, named)
        select.set("windows", None)
    return query


def _write_out(window: exp.Window, named: dict[str, exp.Window]) -> None:
    """Copy the clauses that a window lacks from the window that it names, and so on from the one that this names."""
    while window.args.get("alias"):
        base = named[window.args["alias"].name]
        window.set("alias", base.args["alias"].copy() if base.args.get("alias") else None)
        for clause in ("partition_by", "order", "spec"):
            held = base.args.get(clause)
            if held and not window.args.get(clause):
                window.set(clause, [x.copy() for x in held] if isinstance(held, list) else held.copy())
