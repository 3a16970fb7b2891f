"""What trials cost, now and before: which groups really rose, when many are looked at and trials are few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from scipy import special

from .intervals import ROUNDING, mean, sd, t_quantile

__all__ = ["Costs", "Rise", "costs_of", "rises"]


class Costs(NamedTuple):
    """Trials of one group in three numbers."""

    mean: float
    sd: float | None
    """Sample standard deviation; None with one trial."""
    n: int


class Rise(NamedTuple):
    """How much more a group costs than before; negative where it costs less."""

    delta: float
    lower: float | None
    """Lower end of the 95 % interval of the difference; None where noise is unknown."""
    p: float | None
    """One-sided: the chance of such a rise when nothing changed; None where noise is unknown."""
    q: float | None
    """False discovery rate at which the group may be called risen, among all groups."""


def costs_of(values: Sequence[float]) -> Costs:
    """Summarise the costs of at least one trial.

    Raises:
        ValueError: There are no values.
    """
    return Costs(mean(values), sd(values), len(values))


def rises(pairs: Sequence[tuple[Costs, Costs]], *, confidence: float = 0.95) -> list[Rise]:
    """Compare each group with what it cost before.

    Student's t with a pooled variance: d - t(n1 + n2 - 2) * s * sqrt(1/n1 + 1/n2), so that the noise of both sides is
    in it, and what was saved may be a single trial. The q-values are Benjamini and Hochberg's over all groups of which
    the noise is known.

    Args:
        pairs: Before and now, a pair each group.
        confidence: Nominal coverage of the interval.

    Edges: with one trial now, bound, p and q are unknown: costs are skewed to the right, so that a lone trial is far
    above the mean more often than a t distribution allows. Where no trial differs from another the difference is exact:
    p is 0 for a rise, 1 for none.

    Source: Student (1908), Biometrika 6:1-25; Benjamini & Hochberg (1995), JRSS B 57:289-300.
    """
    found = [_rise(before, now, confidence) for before, now in pairs]
    known = sorted((rise.p, at) for at, rise in enumerate(found) if rise.p is not None)
    q = 1.0
    for rank in range(len(known), 0, -1):
        p, at = known[rank - 1]
        q = min(q, p * len(known) / rank)
        found[at] = found[at]._replace(q=q)
    return found


def _rise(before: Costs, now: Costs, confidence: float) -> Rise:
    delta, df = now.mean - before.mean, before.n + now.n - 2
    if now.n < 2:
        return Rise(delta, None, None, None)
    squares = math.fsum((side.n - 1) * (side.sd or 0.0) ** 2 for side in (before, now))
    error = math.sqrt(squares / df * (1 / before.n + 1 / now.n))
    if error < ROUNDING:
        return Rise(delta, delta, 0.0 if delta > ROUNDING else 1.0, None)
    p = float(special.stdtr(df, -delta / error))
    return Rise(delta, delta - t_quantile(0.5 + confidence / 2, df) * error, p, None)
