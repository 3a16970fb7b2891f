"""Many groups at once: how many look this extreme by chance, and which may be called changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .intervals import ROUNDING
from .permutation import Chance

__all__ = ["Attainable", "StepUp", "attainable_level", "discrete_step_up", "expected_by_chance"]


class Attainable(NamedTuple):
    """What a family can reach at a level."""

    p: float | None
    """The largest p of a lone changed group that reaches the level; None when none can."""
    expected: float
    """E of it: the probability of any verdict when nothing changed, at most (but for two at once)."""


class StepUp(NamedTuple):
    """What each p-value is worth among its family."""

    expected: list[float | None]
    """E(p): how many groups would look as extreme in a run where nothing changed; None above the horizon."""
    q: list[float]
    """False discovery rate at which the group may be called changed; 1 above the horizon."""


def expected_by_chance(p: float, chance: Chance) -> float:
    """E(p) = Σ F_j(p): the expected number of groups with a p-value as small when nothing changed."""
    within = np.searchsorted(chance.attainable, p * (1 + ROUNDING), side="right")
    return float(chance.share[:within].sum())


def attainable_level(chance: Chance, level: float, largest_p: float) -> Attainable:
    """The largest attainable p, up to `largest_p`, whose E is at most the level."""
    steps = np.cumsum(chance.share)
    reached = np.flatnonzero((steps <= level * (1 + ROUNDING)) & (chance.attainable <= largest_p * (1 + ROUNDING)))
    if not len(reached):
        return Attainable(None, 0.0)
    return Attainable(float(chance.attainable[reached[-1]]), float(steps[reached[-1]]))


def discrete_step_up(p: Sequence[float], chance: Chance, horizon: float) -> StepUp:
    """Step-up false discovery rates that know what each group could attain at all.

    q = min over observed p' >= p (up to the horizon) of E(p') / #{p_j <= p'}, at most 1. Most groups cannot give a
    small p by chance (all their results are equal), so that E grows far slower than the number of groups. Calling the
    groups with E(p) <= a changed errs with probability at most a for any dependence between groups; q <= a has the
    same error when nothing changed and finds more when many groups change.

    Args:
        p: One p-value a group.
        chance: What the same family attains by chance (`relabelling_tests`).
        horizon: p-values above it say nothing: E is None and q is 1. (Leaving larger p' out of the minimum can only
            raise q.)

    Source: Heyse (2011), J. Biopharm. Stat. 21:827-845; compare Döhler, Durand & Roquain (2018), EJS 12:1867-1900.
    """
    values = np.asarray(p, dtype=np.float64)
    steps = np.cumsum(np.concatenate(([0.0], chance.share)))
    expected = steps[np.searchsorted(chance.attainable, values * (1 + ROUNDING), side="right")]
    within = values <= horizon * (1 + ROUNDING)
    order = np.argsort(values, kind="stable")
    order = order[within[order]]
    found = np.searchsorted(values[order], values[order] * (1 + ROUNDING), side="right")
    q = np.ones(len(values))
    q[order] = np.minimum(1.0, np.minimum.accumulate((expected[order] / np.maximum(found, 1))[::-1])[::-1])
    shown = [float(e) if inside else None for e, inside in zip(expected, within, strict=True)]
    return StepUp(shown, [float(value) for value in q])
