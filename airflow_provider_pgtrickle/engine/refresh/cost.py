"""The cost of each way to refresh a table is predicted from what the table's last refreshes took; the least is taken.

    predicted = prior(size now) · the median, over a way's last refreshes, of actual / prior(size then)
    prior(size) = what a way takes by itself + size · what a row takes

A difference that was never tried is doubted where PostgreSQL expects far more of its statement than of FULL's:

    predicted = max(the above, predicted of FULL · doubt / 3),  doubt = estimate of the difference / estimate of FULL

until it is known what FULL takes. Then the difference is tried once, for as long as FULL takes, if the doubt is small.

The prior's constants are measured by `pgtrickle calibrate`. A prediction that is wrong makes a refresh slower, and
never its result another one. What was measured counts until the query, the indexes of its sources or the server change.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection
from airflow_provider_pgtrickle.engine.settings import Settings


class Way(StrEnum):
    """The ways to compute a table's rows."""

    DATABASE = "database"
    """The coordinator's session computes and stages them."""
    PUSHED = "pushed"
    """PostgreSQL computes them in one statement, which Spark reads."""
    SLICED = "sliced"
    """PostgreSQL computes slices of the change in as many sessions, and Spark's tasks carry them."""
    LOWERED = "lowered"
    """Spark joins and aggregates what it reads from the sources."""


#: Microseconds by row. By these a FULL of a large table takes as long as a change of 15% of it. The shares are what
#: a row takes on Spark, against the session that also writes it.
CONSTANTS: Mapping[str, float] = {
    "change_us": 20.0,
    "row_us": 3.0,
    "spark_ms": 250.0,
    "pushed_share": 1.4,
    "sliced_share": 1.0,
    "lowered_share": 2.0,
}

_LEAST_MS = 5.0
# Another candidate has to be better by both, or two that are about equal would take turns, and small tables would, too.
_BETTER_MS, _BETTER_BY = 20.0, 1.2
# One slow refresh may be the machine's fault. Until a way was measured this often, the others have to win more.
_SURE, _UNSURE_MS = 3, 200.0
# How many of a way's refreshes are remembered.
_REMEMBERED = 5
# A way that was not taken for long may have become better. It is tried again when it seems to cost not much more: by a
# part less for each refresh since, down to a limit, so that it never costs twice the best.
_FORGIVEN, _LEAST = 0.98, 0.6
# The first content wrote every row and made the indexes: a later FULL takes down to half of that, and is tried once.
_FIRST = 0.5
# A way of Spark's that was never taken is believed to take half, too, and tried once, where the usual one takes long.
_LONG_MS = 20_000.0
# A difference that takes so much longer than FULL is predicted to take is given up. What was spent in vain is
# remembered, and so paid once. The least is more than a machine under load needs for a difference of few rows, on Spark
# with its first job.
_GIVEN_UP_BY, _GIVEN_UP_MS, _GIVEN_UP_SPARK_MS = 3.0, 2_000.0, 10_000.0
# What it would have taken is believed to be so many times what was spent.
_UNFINISHED = 2.0
# PostgreSQL's estimate for a difference is doubted by so much: of TPC-DS's, it put none at more than three times its
# estimate for FULL that was the faster one. It is asked only where FULL takes so long that planning both is little.
# What it said holds for some refreshes, unless far less has changed now.
_ESTIMATED_BY, _ASKED_MS, _ASKED_EVERY, _FAR_LESS = 3.0, 100.0, 20, 0.5
# A greater doubt isn't put to the test: of TPC-DS's at scale factor 1 it was right in each case.
_CERTAIN = 20.0
#: Below this, in PostgreSQL's own units, a statement takes some tens of milliseconds, however few FULL's takes.
LARGE_ESTIMATE = 5_000.0

_SAMPLES = """
WITH t AS MATERIALIZED (
    SELECT id AS pgt_id, pgtrickle.pgt_regime(id) AS regime FROM unnest(%s::bigint[]) AS w(id)
)
SELECT t.pgt_id, m.way, m.whole, coalesce(s.net_changes, s.source_changes), s.source_rows, m.ms, s.age,
       s.candidates IS NOT NULL AND m.number = 1
           -- A first content, or a FULL that something forced, had a choice of ways, and none of a difference.
           AND (s.fallback_reason IS NULL OR s.fallback_reason ~ '^(predicted_cheaper|not_differentiable)'),
       s.doubt, m.number = 2
  FROM t
 CROSS JOIN LATERAL (
    SELECT h.*, row_number() OVER (ORDER BY refresh_id DESC) - 1 AS age
      FROM (SELECT * FROM pgtrickle.pgt_refresh_history
             WHERE pgt_id = t.pgt_id AND actual_ms IS NOT NULL
             ORDER BY refresh_id DESC LIMIT 100) h
     WHERE h.regime = t.regime) s
 CROSS JOIN LATERAL (VALUES
    (1, s.way, s.action IN ('FULL', 'REINITIALIZE'), s.actual_ms),
    (2, coalesce(s.given_up_way, 'database'), false, s.given_up_ms)) AS m (number, way, whole, ms)
 WHERE m.ms IS NOT NULL
 ORDER BY s.age, m.number
"""

_LACKED = """
SELECT h.pgt_id, w.key, min(w.value::float8)
  FROM pgtrickle.pgt_refresh_history h CROSS JOIN LATERAL jsonb_each_text(h.lacked) w
 WHERE h.pgt_id = ANY(%s::bigint[]) AND h.lacked IS NOT NULL
   AND h.regime = pgtrickle.pgt_regime(h.pgt_id) AND h.memory = pgtrickle.pgt_memory(%s)
 GROUP BY h.pgt_id, w.key
"""


@dataclass(frozen=True)
class Candidate:
    """One way to refresh a table, and what it is predicted to take."""

    way: Way
    whole: bool
    predicted_ms: float = 0.0

    @property
    def title(self) -> str:
        return f"{'FULL' if self.whole else 'difference'} {self.way}"

    @property
    def kind(self) -> tuple[str, bool]:
        return self.way, self.whole


@dataclass(frozen=True)
class GivenUp:
    """A difference took far longer than FULL is predicted to take."""

    ms: float
    way: Way


@dataclass(frozen=True)
class Sample:
    """What a refresh took."""

    way: str
    whole: bool
    changes: float
    rows: float
    ms: float
    age: int
    """The number of later refreshes."""
    chosen: bool = False
    """Whether it was taken among others."""
    doubt: float | None = None
    """PostgreSQL's estimate for the difference, as a multiple of that for FULL, if it was asked for."""
    given_up: bool = False
    """It took longer than this, and nobody knows how much."""

    @property
    def kind(self) -> tuple[str, bool]:
        return self.way, self.whole

    @property
    def took_ms(self) -> float:
        """What it took, or is believed to have been about to take."""
        return self.ms * _UNFINISHED if self.given_up else self.ms


@dataclass(frozen=True)
class Experience:
    """What is known of a table's refreshes, and of the installation."""

    samples: tuple[Sample, ...] = ()
    """The newest first."""
    constants: Mapping[str, float] = field(default_factory=lambda: CONSTANTS)
    lacked: Mapping[str, float] = field(default_factory=dict)
    """By the title of a way, the least size for which memory was too short."""

    def suffices(self, candidate: Candidate, changes: float, rows: float) -> bool:
        """Whether memory may suffice for a candidate: it was not too short for this size, or a smaller one.

        >>> known = Experience(lacked={"difference pushed": 900})
        >>> [known.suffices(Candidate(Way.PUSHED, False), changes, 10_000) for changes in (899, 900)]
        [True, False]
        """
        least = self.lacked.get(candidate.title)
        return least is None or (rows if candidate.whole else changes) < least

    def predicted(self, candidate: Candidate, changes: float, rows: float) -> Candidate:
        """The candidate with its predicted cost for this many changed rows, in sources of this many rows."""
        prior = self._prior(candidate.way, candidate.whole, changes, rows)
        return replace(candidate, predicted_ms=round(prior * self._factor(candidate), 3))

    def _factor(self, candidate: Candidate) -> float:
        """How much longer than the prior says it took of late, or took what is most like it."""
        # What PostgreSQL computes for long in one way takes it long in another.
        alike = (self._measured(way, candidate.whole) for way in (candidate.way, *Way))
        known = next((factor for factor in alike if factor is not None), None)
        if known is None and not candidate.whole:
            # The first content was a FULL. Where it took less than the constants say, a difference will, too.
            known = min(self._factor(replace(candidate, whole=True)), 1.0)
        return 1.0 if known is None else known

    def _measured(self, way: str, whole: bool) -> float | None:
        """How much longer than the prior says it took of late; None if it was never measured."""
        own = [s for s in self.samples if s.kind == (way, whole)][:_REMEMBERED]
        factors = [s.took_ms / self._prior(s.way, s.whole, s.changes, s.rows) for s in own]
        return statistics.median(factors) if factors else None

    def _prior(self, way: str, whole: bool, changes: float, rows: float) -> float:
        row = rows * self.constants["row_us"] if whole else changes * self.constants["change_us"]
        share = self.constants.get(f"{way}_share", 1.0)
        start = 0.0 if way == Way.DATABASE else self.constants["spark_ms"]
        return _LEAST_MS + row * share / 1000 + start

    def is_in_doubt(self, candidates: Sequence[Candidate]) -> bool:
        """Whether PostgreSQL's estimates are worth asking for: a difference that was never tried competes with FULL."""
        fulls = [candidate.predicted_ms for candidate in candidates if candidate.whole]
        is_tried = any(not sample.whole for sample in self.samples)
        is_sure = sum(sample.whole and sample.chosen for sample in self.samples) >= _SURE
        is_testable = is_sure and not any((sample.doubt or 0) > _CERTAIN for sample in self.samples)
        return 0 < len(fulls) < len(candidates) and min(fulls) >= _ASKED_MS and not is_tried and not is_testable

    def doubt(self, changes: float) -> float | None:
        """What PostgreSQL has said of late of a difference of about so many changes; None if it is to be asked."""
        said = next((s for s in self.samples if s.doubt is not None and s.age < _ASKED_EVERY), None)
        return None if said is None or changes < said.changes * _FAR_LESS else said.doubt

    @property
    def expects_little(self) -> bool:
        """Whether no difference was ever ready in time, and at least one was given up or doubted."""
        differences = [sample for sample in self.samples if not sample.whole]
        is_doubted = any((sample.doubt or 0) > _ESTIMATED_BY for sample in self.samples)
        return all(sample.given_up for sample in differences) and (bool(differences) or is_doubted)

    def chosen(self, candidates: Sequence[Candidate]) -> Candidate:
        """The cheapest candidate, unless the one that was chosen last is about as cheap. The first is the default.

        >>> fast, slow = Candidate(Way.DATABASE, False, 100.0), Candidate(Way.DATABASE, True, 90.0)
        >>> Experience().chosen([fast, slow]).whole
        False
        """
        kinds = {candidate.kind for candidate in candidates}
        last = next((s.kind for s in self.samples if s.chosen and s.kind in kinds), None)
        kept = next((c for c in candidates if c.kind == last), candidates[0])
        measured = sum(s.kind == kept.kind for s in self.samples)
        if measured >= _SURE:
            for candidate in candidates:
                is_new = self._is_untried(candidate, kept)
                if is_new and candidate.predicted_ms * _FIRST + _BETTER_MS < kept.predicted_ms:
                    return candidate
        best = min(candidates, key=self._discounted)
        cost = self._discounted(best)
        least_gain = max(_BETTER_MS if measured >= _SURE else _UNSURE_MS, cost * (_BETTER_BY - 1))
        return best if cost + least_gain < kept.predicted_ms else kept

    def _is_untried(self, candidate: Candidate, kept: Candidate) -> bool:
        """Whether all that is known of it is the first content, or a FULL that somebody forced.

        Of a way of Spark's nothing may be known at all.
        """
        own = [s for s in self.samples if s.kind == candidate.kind]
        if candidate.way is not Way.DATABASE and not own:
            return candidate.whole == kept.whole and kept.predicted_ms >= _LONG_MS
        return candidate.whole and bool(own) and not any(s.chosen for s in own)

    def _discounted(self, candidate: Candidate) -> float:
        age = next((s.age for s in self.samples if s.kind == candidate.kind), 0)
        return float(candidate.predicted_ms * max(_LEAST, _FORGIVEN**age))


def doubted(candidates: Sequence[Candidate], doubt: float) -> list[Candidate]:
    """The candidates, if PostgreSQL's estimate for the difference is so many times that for FULL.

    >>> ways = [Candidate(Way.DATABASE, False, 90.0), Candidate(Way.DATABASE, True, 900.0)]
    >>> [doubted(ways, doubt)[0].predicted_ms for doubt in (0.2, 30.0)]
    [90.0, 9000.0]
    """
    whole = min((candidate.predicted_ms for candidate in candidates if candidate.whole), default=0.0)
    least = round(whole * doubt / _ESTIMATED_BY, 3)
    return [c if c.whole else replace(c, predicted_ms=max(c.predicted_ms, least)) for c in candidates]


def limit_ms(chosen: Candidate, candidates: Iterable[Candidate], known: Experience) -> float | None:
    """How long a difference may be computed before FULL is computed instead; None where there is no choice.

    >>> full, difference = Candidate(Way.DATABASE, True, 900.0), Candidate(Way.DATABASE, False, 90.0)
    >>> limit_ms(difference, [full], Experience()), limit_ms(full, [full], Experience())
    (2700.0, None)
    >>> limit_ms(difference, [full], Experience((Sample("database", True, 9, 99, 900.0, 0, doubt=20.0),)))
    900.0
    """
    full = [c.predicted_ms for c in candidates if c.whole]
    if chosen.whole or not full:
        return None
    if chosen.way is Way.DATABASE and known.expects_little:
        return max(_ASKED_MS, min(full))
    least = _GIVEN_UP_MS if chosen.way is Way.DATABASE else _GIVEN_UP_SPARK_MS
    return max(least, _GIVEN_UP_BY * max(min(full), chosen.predicted_ms))


def spark_memory(settings: Settings) -> str:
    """What Spark has, as far as it is known here."""
    return f"{settings.spark_master} {settings.spark_driver_memory}"


def told(conn: Connection, pgt_id: int, settings: Settings) -> tuple[str, ...]:
    """What each way was predicted to take when there was a choice last, and what it took of late, in words."""
    row = conn.execute(
        "SELECT candidates FROM pgtrickle.pgt_refresh_history WHERE pgt_id = %s AND candidates IS NOT NULL"
        " ORDER BY refresh_id DESC LIMIT 1",
        (pgt_id,),
    ).fetchone()
    predicted: Mapping[str, float] = row[0] if row else {}
    known = read(conn, [pgt_id], settings)[pgt_id]
    samples = known.samples
    taken = [(Candidate(Way(s.way), s.whole).title, s.ms) for s in samples if s.way]
    titles = dict.fromkeys([*sorted(predicted, key=predicted.__getitem__), *(title for title, _ in taken)])
    lines = []
    for title in titles:
        took = [ms for other, ms in taken if other == title][:_REMEMBERED]
        said = f"{predicted[title]:.0f} ms predicted" if title in predicted else "not weighed"
        lines.append(f"{title}: {said}, {f'{statistics.median(took):.0f} ms taken' if took else 'never taken'}")
    for title, size in sorted(known.lacked.items()):
        of = "rows" if title.startswith("FULL") else "changed rows"
        lines.append(f"{title}: memory was too short for {size:.0f} {of}, so it is not taken from there on")
    return tuple(lines)


def read(conn: Connection, ids: Iterable[int], settings: Settings, *, has_lacked: bool = True) -> dict[int, Experience]:
    """What is known of these stream tables. `has_lacked`: whether memory was ever too short for one of them."""
    wanted = list(ids)
    if not wanted:
        return {}
    constants = {
        **CONSTANTS,
        **dict(conn.execute("SELECT name, value FROM pgtrickle.pgt_calibration").fetchall()),
    }
    samples: dict[int, list[Sample]] = {pgt_id: [] for pgt_id in wanted}
    for pgt_id, way, whole, changes, rows, ms, age, chosen, doubt, given_up in conn.execute(_SAMPLES, (wanted,)):
        if rows is not None or not whole:
            sample = Sample(way, whole, float(changes), float(rows or 0), float(ms), int(age), chosen, doubt, given_up)
            samples[pgt_id].append(sample)
    lacked: dict[int, dict[str, float]] = {pgt_id: {} for pgt_id in wanted}
    if has_lacked:
        for pgt_id, title, size in conn.execute(_LACKED, (wanted, spark_memory(settings))):
            lacked[pgt_id][title] = float(size)
    return {pgt_id: Experience(tuple(known), constants, lacked[pgt_id]) for pgt_id, known in samples.items()}
