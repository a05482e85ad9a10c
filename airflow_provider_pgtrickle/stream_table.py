"""One stream table as a DAG file declares it. It needs no Airflow until its asset is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_provider_pgtrickle.engine.declare.options import Options
from airflow_provider_pgtrickle.engine.errors import PgTrickleError, UsageError
from airflow_provider_pgtrickle.engine.graph import Node
from airflow_provider_pgtrickle.engine.graph.reads import reads
from airflow_provider_pgtrickle.engine.names import QualifiedName
from airflow_provider_pgtrickle.engine.settings import Settings

if TYPE_CHECKING:
    from airflow.sdk import Asset

DEFAULT_CONN_ID = "pgtrickle_default"
DEFAULT_SCHEMA = "public"

#: The graph enforces the minimum schedule, because reading Airflow's configuration for every table would be slow.
_UNLIMITED = Settings(min_schedule_seconds=1)


@dataclass(frozen=True)
class StreamTable:
    """A table in PostgreSQL whose content follows a query.

    Name, query and options are checked here, so that a mistake is an import error of the DAG file.

    :param name: `name` or `schema.name`; without a schema it is in `public`
    :param query: one SELECT in PostgreSQL's SQL
    :param schedule: `5m`, a cron expression in UTC, `@daily`; None: calculated from the tables that read it
    :param refresh_mode: AUTO, DIFFERENTIAL, FULL or IMMEDIATE: maintained by its sources' writers, without a schedule
    :param append_only: rows of its sources are only ever inserted, which is checked
    :param append_only_breach: what an UPDATE, DELETE or TRUNCATE of a source does: `end` that declaration, or be
    `refuse`d
    :param frozen_before: rows of its sources that don't change any more, by a column and a bound, such as
    `{"orders.placed": "90 days"}`
    :param frozen_breach: what becomes of a change of such a row: it is `refuse`d to the writer, or the table `ignore`s
    it and keeps the row as it was
    :param diamond_consistency: `atomic`: a diamond that closes here is one unit; `none`: its tables stand alone
    :param diamond_schedule_policy: `fastest`: such a unit is due when one of its tables is; `slowest`: when all are
    :param cdc_mode: how changes of its sources are captured: `trigger`, `wal` or `auto`; None: by the setting
    :param partition_by: `RANGE(column)`, `LIST(column)` or `HASH(column)`, to partition its storage
    :param partition_every: the partitions that refreshes make as rows come: `1 month`, `1000` of a number, `value`
    :param keep: how far back it goes, such as `2 years`: rows of older partitions are not in the content
    :param tier: `hot`: refreshed on schedule; `warm`: half as often; `cold`: once filled, only on demand; `frozen`:
    never; `auto`: hot, warm or cold, as it is read
    :param differential_max_change_ratio: a refresh runs FULL if a larger share of a source has changed
    :param verify_every: how often its DAG compares the content with the query, such as `1d`; None: never
    :param placement: where its changes are computed: `spark`, `auto` or `database`; None: as the graph or setting says
    :param timezone: the zone by which its query casts times and reads the clock, such as `Europe/Oslo`; None: as the
    graph says, else UTC. Schedules are in UTC whatever it is
    :param unlogged_buffers: whether capture may do without a log; after a crash of the server it then runs FULL once;
    None: as the graph or setting says
    :param unit: the unit that it is in, by name: `Unit` says it of several tables
    :param float_sums: `approximate`: sums over floats are kept by adding, and off by rounding; `exact`: they are not
    :param description: for the documentation of its DAG and task
    :param depends_on: stream tables that the query reads through a view, which its text doesn't show
    :param tags: words by which `tag:…` selects it
    :param component: the name of its component, which ends the id of its DAG where the graph is split
    """

    name: str
    query: str = field(repr=False)
    schedule: str | None = None
    refresh_mode: str = "AUTO"
    append_only: bool = False
    append_only_breach: str = "end"
    frozen_before: str | Mapping[str, object] | None = None
    frozen_breach: str = "refuse"
    diamond_consistency: str = "atomic"
    diamond_schedule_policy: str = "fastest"
    cdc_mode: str | None = None
    partition_by: str | None = None
    partition_every: str | None = None
    keep: str | None = None
    tier: str = "hot"
    differential_max_change_ratio: float | None = None
    verify_every: str | None = None
    placement: str | None = None
    timezone: str | None = None
    unlogged_buffers: bool | None = None
    unit: str | None = None
    float_sums: str = "exact"
    description: str | None = field(default=None, repr=False)
    depends_on: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    component: str | None = None

    def __post_init__(self) -> None:
        try:
            for several in ("depends_on", "tags"):
                object.__setattr__(self, several, _several(several, getattr(self, several)))
            _ = self.qualified, self.reads, self._options
        except PgTrickleError as error:
            # The name is made text that a log can take, whatever it is.
            error.stream_table = error.stream_table or str(self.name).encode(errors="backslashreplace").decode()
            error.args = (str(error),)
            raise

    @cached_property
    def qualified(self) -> QualifiedName:
        return QualifiedName.parse(self.name, DEFAULT_SCHEMA)

    @cached_property
    def reads(self) -> frozenset[QualifiedName]:
        """What it reads, by the query's text and `depends_on`."""
        named = {QualifiedName(schema, name) for schema, name in reads(self.query, DEFAULT_SCHEMA)}
        return frozenset(named | {QualifiedName.parse(name, DEFAULT_SCHEMA) for name in self.depends_on})

    @cached_property
    def node(self) -> Node:
        return Node(
            str(self.qualified),
            frozenset(str(name) for name in self.reads),
            self.schedule,
            self._options.diamond_consistency,
            self._options.diamond_schedule_policy,
            self._options.unit,
        )

    @property
    def is_immediate(self) -> bool:
        """Whether its sources' writers are to maintain it."""
        return self._options.refresh_mode == "IMMEDIATE"

    @property
    def options(self) -> dict[str, Any]:
        """The options as `PgTrickle.create_or_replace_stream_table` takes them."""
        options = asdict(self._options)
        options["placement"] = options["placement"] or self.__dict__.get("_placement")
        if self.timezone is None:
            options["timezone"] = self.__dict__.get("_timezone")
        if self.unlogged_buffers is None:
            of_graph = self.__dict__.get("_unlogged_buffers")
            options["unlogged_buffers"] = Settings.load().unlogged_buffers if of_graph is None else of_graph
        return options

    @cached_property
    def _options(self) -> Options:
        names = Options.__dataclass_fields__
        return Options.checked(_UNLIMITED, {name: getattr(self, name) for name in names})

    @property
    def asset(self) -> Asset:
        """Its asset, which is updated only when rows really changed; `schedule=[table.asset]` follows it.

        The URI is built from the connection's id or the graph's `database_uri`, and never from the connection itself,
        because every process that parses the DAG file must see the same asset.
        """
        return self._asset

    @cached_property
    def _asset(self) -> Asset:
        return asset_of(self.__dict__.get("_home") or Home(DEFAULT_CONN_ID), self.qualified)

    def join(self, unit: str) -> None:
        """Put the table into a unit. Like an asset of it, the declaration stays the same one."""
        if self._options.unit not in (None, unit):
            raise UsageError(
                f"It is in unit {self._options.unit!r}, and can't be in {unit!r}, too",
                stream_table=self.name,
                remedy="Make one unit of the two.",
            )
        object.__setattr__(self, "unit", unit)
        for fact in ("_options", "node"):
            self.__dict__.pop(fact, None)
        try:
            _ = self._options
        except UsageError as error:
            raise UsageError(error.message, remedy=error.remedy, stream_table=self.name) from None

    def settle(
        self,
        home: Home,
        placement: str | None = None,
        unlogged_buffers: bool | None = None,
        timezone: str | None = None,
    ) -> None:
        """Set the table's database, and what its graph says for all. A table can't be in graphs of two databases."""
        settled = self.__dict__.get("_home", home)
        taken = "_asset" in self.__dict__ and "_home" not in self.__dict__
        if settled != home or (taken and home != Home(DEFAULT_CONN_ID)):
            raise UsageError(
                "It belongs to another database already",
                stream_table=self.name,
                remedy="Declare it once for each graph, and use .asset after the graph was declared.",
            )
        self.__dict__["_home"] = home
        self.__dict__["_placement"] = placement
        self.__dict__["_unlogged_buffers"] = unlogged_buffers
        self.__dict__["_timezone"] = timezone


@dataclass(frozen=True)
class Unit:
    """Stream tables that must be consistent with one another, whatever reads what: `Unit("ledger", [a, b, c])`.

    They are refreshed on one snapshot and in one commit, by whoever refreshes one of them. Put it into the graph's
    `tables`.

    :param name: its task's id
    :param tables: the declarations, in any order. Tables through which a source reaches them in a second way are taken
    along
    """

    name: str
    tables: Sequence[StreamTable]

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", tuple(self.tables))
        for table in self.tables:
            table.join(self.name)


@dataclass(frozen=True)
class Home:
    """A database as its assets name it: by its connection's id, or by its address where the graph knows that."""

    conn_id: str
    database_uri: str | None = None

    @property
    def uri(self) -> str:
        """The address, or `pgtrickle://` and the connection's id: what a connection means isn't known at parse time."""
        return self.database_uri or f"pgtrickle://{quote(self.conn_id, safe='')}"

    @property
    def title(self) -> str:
        """The URI without its scheme. No two databases have the same."""
        return self.uri.partition("://")[2]


def asset_of(home: Home, table: QualifiedName) -> Asset:
    """The asset of a table of that database, be it a stream table or a source.

    Airflow wants a name to mean one URI, so the name begins with the database. Whoever names a table gives it the same
    group and extra, because the last one that is parsed decides what Airflow shows.
    """
    from airflow.sdk import Asset

    short = table.name if table.schema == DEFAULT_SCHEMA else str(table)
    return Asset(
        name=f"{home.title}.{quote(short, safe=' ')}",
        uri=f"{home.uri}/{quote(table.schema, safe='')}/{quote(table.name, safe='')}",
        group=home.title,
        extra={"table": str(table), "connection": home.conn_id},
    )


def _several(name: str, given: Any) -> tuple[str, ...]:
    """A list of names. A single text would be taken for a list of its letters."""
    if isinstance(given, str) or not all(isinstance(one, str) for one in given):
        raise UsageError(f"{name} must be a list of names, not {given!r}", remedy=f'Write {name}=["…"].')
    return tuple(given)
