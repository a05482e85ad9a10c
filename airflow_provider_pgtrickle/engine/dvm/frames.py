"""The values of some windows depend on the order of rows that tie."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_pgtrickle.engine.dvm.calls import call_name, is_order_sensitive

_BY_POSITION = {"row_number", "ntile", "lag", "lead"}
_BY_FRAME = {"first_value", "last_value", "nth_value"}
_BY_PEERS = {"rank", "dense_rank", "percent_rank", "cume_dist"}


def called(window: exp.Window) -> exp.Expr:
    """Return the function that a window evaluates."""
    function: exp.Expr = window.this
    while isinstance(function, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        function = function.this
    return function


def depends_on_ties(window: exp.Window) -> bool:
    """Whether rows that tie may get each other's values."""
    function = called(window)
    name = call_name(function)
    if name in _BY_PEERS:
        return False
    return name in _BY_POSITION | _BY_FRAME or _counts_rows(window) or is_order_sensitive(function)


def picks_from_frame(function: exp.Expr) -> bool:
    """Whether a function returns nothing but values of one or several rows of its frame."""
    return call_name(function) in _BY_FRAME or is_order_sensitive(function)


def may_be_finer(window: exp.Window) -> bool:
    """Whether a window with a finer order still gives one of the answers that it may give while rows tie.

    Rows that tie share a frame that isn't counted in rows. A finer order keeps it if it is the whole partition.
    """
    function, spec = called(window), window.args.get("spec")
    name = call_name(function)
    if _counts_rows(window) or name in _BY_POSITION:
        return True
    if name in _BY_FRAME:
        return _reaches_its_end(name, spec)
    return not window.args.get("order") if spec is None else _reaches_its_end("nth_value", spec)


def _counts_rows(window: exp.Window) -> bool:
    spec = window.args.get("spec")
    return spec is not None and (spec.args.get("kind") or "").upper() == "ROWS"


def _reaches_its_end(name: str, spec: exp.Expr | None) -> bool:
    """Whether the frame begins (or ends) with the partition, so that a finer order picks one of the rows that tie."""
    if spec is None:
        return name == "first_value"
    if spec.args.get("exclude") or any(isinstance(spec.args.get(end), exp.Expr) for end in ("start", "end")):
        return False
    if name == "first_value":
        return spec.args.get("start") == "UNBOUNDED"
    return spec.args.get("end") == "UNBOUNDED" and (name == "last_value" or spec.args.get("start") == "UNBOUNDED")


def made_finer(window: exp.Window, breakers: list[exp.Expr]) -> exp.Window:
    """Return a copy ordered by further terms; a window without an order keeps the whole partition as its frame."""
    copy = window.copy()
    order = copy.args.get("order") or exp.Order(expressions=[])
    order.set("expressions", [*order.expressions, *(b.copy() for b in breakers)])
    copy.set("order", order)
    if not window.args.get("order") and window.args.get("spec") is None:
        copy.set(
            "spec",
            exp.WindowSpec(
                kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="UNBOUNDED", end_side="FOLLOWING"
            ),
        )
    return copy
