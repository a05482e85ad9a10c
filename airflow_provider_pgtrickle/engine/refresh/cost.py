"""The cost of each way to refresh a table is predicted from what the table's last refreshes took; the least is taken.

    predicted = prior(size now) · the median, over a way's last refreshes, of actual / prior(size then)
    prior(size) = what a way takes by itself + size · what a row takes

The prior's constants are measured by `pgtrickle calibrate`. A prediction that is wrong makes a refresh slower, and
never its result another one. What was measured counts until the query, the indexes of its sources or the server change.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from airflow_provider_pgtrickle.engine.refresh.snapshot import Connection


class Way(StrEnum):
    """The ways to compute a table's rows."""

    DATABASE = "database"
    """The coordinator's session computes and stages them."""
    PUSHED = "pushed"
    """PostgreSQL computes them in one statement, which Spark reads."""
    LOWERED = "lowered"
    """Spark joins and aggregates what it reads from the sources."""


#: Microseconds by row. By these a FULL of a large table takes as long as a change of 15% of it.
CONSTANTS: Mapping[str, float] = {"change_us": 20.0, "row_us": 3.0, "spark_ms": 250.0, "spark_share": 1.0}

_LEAST_MS = 5.0
# Another candidate has to be better by both, or two that are about equal would take turns, and small tables would, too.
_BETTER_MS, _BETTER_BY = 30.0, 1.25
# One slow refresh may be the machine's fault. Until a way was measured this often, the others have to win more.
_SURE, _UNSURE_MS = 3, 200.0
# How many of a way's refreshes are remembered.
_REMEMBERED = 5
# A way that was not taken for long may have become better. It is tried again when it seems to cost not much more: by a
# part less for each refresh since, down to a limit, so that it never costs twice the best.
_FORGIVEN, _LEAST = 0.98, 0.6
# The first content wrote every row and made the indexes: a later FULL takes down to half of that, and is tried once.
_FIRST = 0.5
# A difference that takes so much longer than FULL is predicted to take is given up. What was spent in vain is
# remembered, and so paid once. The least is more than a machine under load needs for a difference of few rows.
_GIVEN_UP_BY, _GIVEN_UP_MS = 3.0, 2_000.0

_SAMPLES = """
WITH t AS MATERIALIZED (
    SELECT id AS pgt_id, pgtrickle.pgt_regime(id) AS regime FROM unnest(%s::bigint[]) AS w(id)
)
SELECT t.pgt_id, m.way, m.whole, coalesce(s.net_changes, s.source_changes), s.source_rows, m.ms, s.age,
       s.candidates IS NOT NULL AND m.number = 1
  FROM t
 CROSS JOIN LATERAL (
    SELECT h.*, row_number() OVER (ORDER BY refresh_id DESC) - 1 AS age
      FROM (SELECT * FROM pgtrickle.pgt_refresh_history
             WHERE pgt_id = t.pgt_id AND actual_ms IS NOT NULL
             ORDER BY refresh_id DESC LIMIT 100) h
     WHERE h.regime = t.regime) s
 CROSS JOIN LATERAL (VALUES
    (1, s.way, s.action IN ('FULL', 'REINITIALIZE'), s.actual_ms),
    (2, 'database', false, s.given_up_ms)) AS m (number, way, whole, ms)
 WHERE m.ms IS NOT NULL
 ORDER BY s.age, m.number
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
    def kind(self) -> tuple[bool, bool]:
        """What competes: whether Spark takes part, and FULL. Sizes decide which of Spark's ways it is."""
        return self.way is not Way.DATABASE, self.whole


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

    @property
    def kind(self) -> tuple[bool, bool]:
        return self.way != Way.DATABASE, self.whole


@dataclass(frozen=True)
class Experience:
    """What is known of a table's refreshes, and of the installation."""

    samples: tuple[Sample, ...] = ()
    """The newest first."""
    constants: Mapping[str, float] = field(default_factory=lambda: CONSTANTS)

    def predicted(self, candidate: Candidate, changes: float, rows: float) -> Candidate:
        """The candidate with its predicted cost for this many changed rows, in sources of this many rows."""
        prior = self._prior(candidate.way, candidate.whole, changes, rows)
        factor = self._factor(candidate.kind)
        if factor is None:
            # The first content was a FULL. Where it took less than the constants say, a difference will, too.
            factor = 1.0 if candidate.whole else min(self._factor((candidate.kind[0], True)) or 1.0, 1.0)
        return Candidate(candidate.way, candidate.whole, round(prior * factor, 3))

    def _factor(self, kind: tuple[bool, bool]) -> float | None:
        """How much longer than the prior says it took of late; None if it was never measured."""
        own = [s for s in self.samples if s.kind == kind][:_REMEMBERED]
        return statistics.median(s.ms / self._prior(s.way, s.whole, s.changes, s.rows) for s in own) if own else None

    def _prior(self, way: str, whole: bool, changes: float, rows: float) -> float:
        row = rows * self.constants["row_us"] if whole else changes * self.constants["change_us"]
        share = self.constants["spark_share"] if way == Way.LOWERED else 1.0
        start = 0.0 if way == Way.DATABASE else self.constants["spark_ms"]
        return _LEAST_MS + row * share / 1000 + start

    def chosen(self, candidates: Sequence[Candidate]) -> Candidate:
        """The cheapest candidate, unless the one that was chosen last is about as cheap. The first is the default.

        >>> fast, slow = Candidate(Way.DATABASE, False, 100.0), Candidate(Way.DATABASE, True, 90.0)
        >>> Experience().chosen([fast, slow]).whole
        False
        """
        last = next((s.kind for s in self.samples if s.chosen), None)
        kept = next((c for c in candidates if c.kind == last), candidates[0])
        measured = sum(s.kind == kept.kind for s in self.samples)
        if measured >= _SURE:
            for candidate in filter(self._is_untried, candidates):
                if candidate.predicted_ms * _FIRST + _BETTER_MS < kept.predicted_ms:
                    return candidate
        best = min(candidates, key=self._discounted)
        cost = self._discounted(best)
        least_gain = max(_BETTER_MS if measured >= _SURE else _UNSURE_MS, cost * (_BETTER_BY - 1))
        return best if cost + least_gain < kept.predicted_ms else kept

    def _is_untried(self, candidate: Candidate) -> bool:
        """Whether all that is known of it is the first content, or a FULL that somebody forced."""
        own = [s for s in self.samples if s.kind == candidate.kind]
        return candidate.whole and bool(own) and not any(s.chosen for s in own)

    def _discounted(self, candidate: Candidate) -> float:
        age = next((s.age for s in self.samples if s.kind == candidate.kind), 0)
        return float(candidate.predicted_ms * max(_LEAST, _FORGIVEN**age))


def limit_ms(chosen: Candidate, candidates: Iterable[Candidate]) -> float | None:
    """How long the session may compute a difference before FULL is computed instead; None where there is no choice.

    >>> full = Candidate(Way.DATABASE, True, 900.0)
    >>> limit_ms(Candidate(Way.DATABASE, False, 90.0), [full]), limit_ms(full, [full])
    (2700.0, None)
    """
    full = [c.predicted_ms for c in candidates if c.whole and c.way is Way.DATABASE]
    if chosen.whole or chosen.way is not Way.DATABASE or not full:
        return None
    return max(_GIVEN_UP_MS, _GIVEN_UP_BY * max(min(full), chosen.predicted_ms))


def told(conn: Connection, pgt_id: int) -> tuple[str, ...]:
    """What each way was predicted to take when there was a choice last, and what it took of late, in words."""
    row = conn.execute(
        "SELECT candidates FROM pgtrickle.pgt_refresh_history WHERE pgt_id = %s AND candidates IS NOT NULL"
        " ORDER BY refresh_id DESC LIMIT 1",
        (pgt_id,),
    ).fetchone()
    predicted: Mapping[str, float] = row[0] if row else {}
    samples = read(conn, [pgt_id])[pgt_id].samples
    taken = [(Candidate(Way(s.way), s.whole).title, s.ms) for s in samples if s.way]
    titles = dict.fromkeys([*sorted(predicted, key=predicted.__getitem__), *(title for title, _ in taken)])
    lines = []
    for title in titles:
        took = [ms for other, ms in taken if other == title][:_REMEMBERED]
        said = f"{predicted[title]:.0f} ms predicted" if title in predicted else "not weighed"
        lines.append(f"{title}: {said}, {f'{statistics.median(took):.0f} ms taken' if took else 'never taken'}")
    return tuple(lines)


def read(conn: Connection, ids: Iterable[int]) -> dict[int, Experience]:
    """What is known of these stream tables."""
    wanted = list(ids)
    if not wanted:
        return {}
    constants = {
        **CONSTANTS,
        **dict(conn.execute("SELECT name, value FROM pgtrickle.pgt_calibration").fetchall()),
    }
    samples: dict[int, list[Sample]] = {pgt_id: [] for pgt_id in wanted}
    for pgt_id, way, whole, changes, rows, ms, age, chosen in conn.execute(_SAMPLES, (wanted,)):
        if rows is not None or not whole:
            samples[pgt_id].append(Sample(way, whole, float(changes), float(rows or 0), float(ms), int(age), chosen))
    return {pgt_id: Experience(tuple(known), constants) for pgt_id, known in samples.items()}
