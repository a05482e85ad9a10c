"""Random schemas and their first rows."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.property.changes import inserts, updates, wheres
from tests.property.kinds import BIGINT, INT, PLAIN, RICH, TEXT, Column, Kind
from tests.property.tables import Table, World

_NAMES = ("a", "b", "c", '"D e"', '"order"')
_ON = ("CASCADE", "CASCADE", "SET NULL", "SET DEFAULT", "NO ACTION")


@st.composite
def worlds(draw: st.DrawFn, *, entangled: bool = False) -> World:
    """Two to four tables, keyed or not, with up to eight rows each; entangled ones all refer to one another."""
    rich = draw(st.lists(st.sampled_from(RICH), max_size=3, unique=True))
    # Few types in one world, so that columns of different tables can be compared.
    palette = (*PLAIN, *rich, *rich)
    tables: list[Table] = []
    for number in range(draw(st.integers(2, 4))):
        tables.append(draw(_tables(f"t{number}", palette, tuple(tables), entangled=entangled)))
    rows = [row for table in tables if draw(st.integers(0, 5)) < 5 for row in draw(_first_rows(table))]
    return World(tuple(tables), tuple(rows), draw(_triggers(tuple(tables), often=entangled)))


@st.composite
def _tables(
    draw: st.DrawFn, name: str, palette: tuple[Kind, ...], earlier: tuple[Table, ...], *, entangled: bool
) -> Table:
    first = draw(st.sampled_from((INT, INT, TEXT, BIGINT, *palette[len(PLAIN) :])))
    if entangled or not first.comparable:
        first = INT
    others = draw(st.lists(st.sampled_from(palette), min_size=1, max_size=4))
    columns = [Column(label, kind) for label, kind in zip(_NAMES, [first, *others], strict=False)]
    size = 1 if entangled else draw(st.sampled_from((1, 0, 0, 2)))
    key = tuple(column.name for column in columns[: size if all(c.kind.comparable for c in columns[:size]) else 1])
    values = first.literals[:2] if first.told_apart is None else ()
    partitions = draw(st.sampled_from(((), (), (), (), (), values)))
    checked_at_end = bool(key) and not partitions and draw(st.integers(0, 5)) == 5
    made = Table(name, tuple(columns), key if size else (), None, checked_at_end and size > 0, partitions)
    targets = [t for t in (*earlier, made) if len(t.key) == 1 and not t.checked_at_end and len(made.columns) > 1]
    if not targets or (not entangled and draw(st.integers(0, 2))):
        return made
    target = draw(st.sampled_from(targets))
    number = len(columns) - 1 if columns[-1].name not in key else None
    if number is None:
        return made
    columns[number] = Column(columns[number].name, target.columns[0].kind)
    action = f"ON UPDATE {draw(st.sampled_from(_ON))} ON DELETE {draw(st.sampled_from(_ON))}"
    reference = (number, f"{target.name} ({target.key[0]})", action)
    return Table(name, tuple(columns), made.key, reference, made.checked_at_end, partitions)


@st.composite
def _triggers(draw: st.DrawFn, tables: tuple[Table, ...], *, often: bool) -> tuple[str, ...]:
    """Now and then a user's own trigger, which changes the row at hand or another table."""
    if draw(st.integers(0, 1 if often else 5)):
        return ()
    table, other = draw(st.sampled_from(tables)), draw(st.sampled_from(tables))
    column = table.columns[-1]
    value = draw(column.kind.literal())
    effect = draw(
        st.sampled_from(
            (f"DELETE FROM {other.name} WHERE {draw(wheres(other))}", draw(updates(other)), draw(inserts(other)))
        )
    )
    moment, body = draw(
        st.sampled_from(
            (
                ("BEFORE INSERT OR UPDATE ON {} FOR EACH ROW", f"NEW.{column.name} := {value}; RETURN NEW;"),
                ("BEFORE UPDATE OR DELETE ON {} FOR EACH ROW", f"IF OLD.{column.name} IS NULL THEN RETURN NULL; END IF;"
                 " IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW;"),
                ("AFTER INSERT OR DELETE ON {} FOR EACH ROW", f"{effect}; RETURN NULL;"),
                ("AFTER UPDATE OR DELETE ON {} FOR EACH STATEMENT", f"{effect}; RETURN NULL;"),
                ("BEFORE UPDATE OR INSERT ON {} FOR EACH STATEMENT", f"{effect}; RETURN NULL;"),
            )
        )
    )  # fmt: skip
    # Triggers of one table go by their names: it comes before or after those that capture.
    name = draw(st.sampled_from(("a_trigger", "z_trigger")))
    once = "IF pg_trigger_depth() > 1 THEN RETURN coalesce(NEW, OLD); END IF;"
    return (
        f"CREATE FUNCTION of_a_user() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {once} {body} END$$",
        f"CREATE TRIGGER {name} {moment.format(table.name)} EXECUTE FUNCTION of_a_user()",
    )


@st.composite
def _first_rows(draw: st.DrawFn, table: Table) -> list[str]:
    """Row by row where a reference may refuse some."""
    if table.reference is None:
        return [draw(inserts(table, least=3, most=8))]
    return [draw(inserts(table, most=1)) for _ in range(draw(st.integers(3, 8)))]
