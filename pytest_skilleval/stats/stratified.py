"""The overall test: relabel the trials of every group at once, for score and pass rate together."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .intervals import ROUNDING, normal_quantile
from .permutation import RELABELLINGS, SEED, Relabellings, product, relabellings

__all__ = ["MetricTest", "StratifiedTest", "Stratum", "stratified_test"]

Floats = NDArray[np.float64]
SCORE, PASS, STEADY = range(3)
"""The components: score, pass rate, and pass rate with each group in units of its own spread."""
COUNTABLE = 4_000
"""Up to this many joint outcomes are counted; beyond, relabellings are drawn."""
CHUNK = 16
"""Strata in one matrix product: 16 strata by 10,000 relabellings are 1 MB, which stays in the cache."""


class Stratum(NamedTuple):
    """The trials of one group in both runs; at least one in each."""

    weight: float
    """Of its mean difference in the overall one."""
    base: tuple[tuple[float, float], ...]
    """(score, pass) of each baseline trial, in [0, 1], sorted."""
    cand: tuple[tuple[float, float], ...]
    """The same of the candidate."""


class MetricTest(NamedTuple):
    """One metric's part in the test."""

    delta: float
    """Weighted sum of the groups' mean differences."""
    spread: float
    """Its standard deviation over all relabellings; 0 when no group has results that differ."""
    p: float
    """Probability that any component is as extreme as the metric's most extreme one; 1 when nothing can differ."""


class StratifiedTest(NamedTuple):
    """What relabelling all groups at once says."""

    score: MetricTest
    pass_rate: MetricTest
    p: float
    """Of both together: the smaller of their p."""
    critical: float
    """How many spreads a delta must reach to be decided at the level."""
    exact: bool
    """Whether all relabellings were counted, not some drawn."""


class _Law(NamedTuple):
    """Distribution of the statistic: its values, ascending; near-equal ones are one."""

    values: Floats
    at_least: Floats
    """P(as extreme or more) at each value."""
    mid_p: Floats
    """P(more extreme) + P(as extreme) / 2 at each value."""

    def p(self, observed: float) -> float:
        """The mid-p of what was observed."""
        index = int(np.searchsorted(self.values, observed - ROUNDING))
        # The less extreme metric's z need not be a value of the maximum over metrics.
        tied = self.values[index] <= observed + ROUNDING
        return float(self.mid_p[index] if tied else self.at_least[index])

    def critical(self, level: float) -> float:
        """The smallest value whose mid-p is at most the level; beyond the largest where there is none."""
        allowed = np.flatnonzero(self.mid_p <= level)
        return float(self.values[allowed[0]] if len(allowed) else self.values[-1] + 1)


def _law(values: Floats, probability: Floats) -> _Law:
    order = np.argsort(values, kind="stable")
    values, probability = values[order], probability[order]
    starts = np.flatnonzero(np.diff(values, prepend=-1.0) > ROUNDING)
    blocks = np.add.reduceat(probability, starts)
    at_least = np.minimum(1.0, np.cumsum(blocks[::-1])[::-1])
    return _Law(values[starts], at_least, at_least - blocks / 2)


def _variance(stratum: Stratum, metric: int) -> float:
    """Variance of the group's mean difference over its relabellings: s² (1/T1 + 1/T2), s² being that of all results."""
    pooled = [trial[metric] for trial in (*stratum.base, *stratum.cand)]
    if max(pooled) - min(pooled) < ROUNDING:
        return 0.0
    centre = math.fsum(pooled) / len(pooled)
    square = math.fsum((value - centre) ** 2 for value in pooled) / (len(pooled) - 1)
    return square * (1 / len(stratum.base) + 1 / len(stratum.cand))


class _Weighted(NamedTuple):
    """A group whose results differ, and how its mean differences enter each component."""

    stratum: Stratum
    weights: tuple[float, float, float]
    variances: tuple[float, float, float]
    """Of the mean difference that each component takes."""

    def contribution(self, component: int) -> float:
        """What the group adds to a component's sum."""
        metric = min(component, PASS)
        base, cand = self.stratum.base, self.stratum.cand
        mean_base = math.fsum(trial[metric] for trial in base) / len(base)
        mean_cand = math.fsum(trial[metric] for trial in cand) / len(cand)
        return self.weights[component] * (mean_cand - mean_base)


def _weighted(stratum: Stratum) -> _Weighted:
    score, passes = _variance(stratum, SCORE), _variance(stratum, PASS)
    steady = stratum.weight / math.sqrt(passes) if passes > 0 else 0.0
    return _Weighted(stratum, (stratum.weight, stratum.weight, steady), (score, passes, passes))


def stratified_test(
    strata: Sequence[Stratum], *, level: float, draws: int = RELABELLINGS, seed: int = SEED
) -> StratifiedTest:
    """Relabelling test of the overall difference in score and pass rate together.

    When nothing changed, the trials of both runs of a group are exchangeable. All groups are relabelled at once and
    independently. The statistic is the largest |z| of three components, each a weighted sum of mean differences
    divided by its standard deviation over the relabellings: score; pass rate; and pass rate with each group in units
    of its own spread, which sees a small change that all groups share. A metric's p is the mid-p of its own |z| (for
    the pass rate the larger of its two, when both point the same way) in the distribution of the largest one: mid-p,
    for the distribution is coarse in small runs. It speaks for these cases.

    Args:
        strata: The groups that decide; their weights should sum to 1.
        level: That `critical` is to be exceeded at.
        draws: Relabellings that are drawn.
        seed: Of the draws.

    Edges: groups whose results are all equal drop out by themselves; with no other group p is 1. Where the joint
    outcomes of all groups are few, all are counted (a convolution) and nothing is drawn.

    The order of groups and of trials changes nothing: groups are put in order by their contents first.

    Source: Fisher's permutation test, stratified; mid-p: Lancaster (1961), JASA 56:223-234; the maximum over
    components: Westfall & Young (1993), Resampling-Based Multiple Testing; the third one: Stouffer et al. (1949).
    """
    ordered = sorted(strata, key=lambda s: (len(s.base), len(s.cand), s.weight, s.base, s.cand))
    weighted = [_weighted(stratum) for stratum in ordered]
    components = (SCORE, PASS, STEADY)
    deltas = [math.fsum(w.contribution(c) for w in weighted) for c in components]
    spreads = [math.sqrt(math.fsum(w.weights[c] ** 2 * w.variances[c] for w in weighted)) for c in components]
    alive = [w for w in weighted if max(w.variances) > 0]
    if not alive:
        nothing = [MetricTest(delta, 0.0, 1.0) for delta in deltas]
        return StratifiedTest(nothing[SCORE], nothing[PASS], 1.0, normal_quantile(1 - level / 2), exact=True)
    z = [delta / spread if spread > 0 else 0.0 for delta, spread in zip(deltas, spreads, strict=True)]
    counted = _counted_law(alive, spreads)
    law = counted or _drawn_law(alive, spreads, max(abs(value) for value in z), draws, seed)
    steady = abs(z[STEADY]) if z[STEADY] * z[PASS] > 0 else 0.0
    score = MetricTest(deltas[SCORE], spreads[SCORE], law.p(abs(z[SCORE])) if spreads[SCORE] > 0 else 1.0)
    passes = MetricTest(deltas[PASS], spreads[PASS], law.p(max(abs(z[PASS]), steady)) if spreads[PASS] > 0 else 1.0)
    return StratifiedTest(score, passes, min(score.p, passes.p), law.critical(level), counted is not None)


def _counted_law(strata: Sequence[_Weighted], spreads: Sequence[float]) -> _Law | None:
    """Distribution of max |z| over all joint relabellings; None where they have too many outcomes."""
    sums, probability = np.zeros((1, 3)), np.ones(1)
    for weighted in strata:
        dealt = relabellings(len(weighted.stratum.base), len(weighted.stratum.cand))
        if not dealt.complete:
            return None
        table = _tables([weighted], dealt, None)[0]
        dealt_to = (_mirrored(table) if dealt.mirrored else table)[[0, 1, 1]].T * np.array(weighted.weights)
        own, chance = _merge(dealt_to, np.full(len(dealt_to), 1 / len(dealt_to)))
        if len(own) * len(sums) > 10 * COUNTABLE:
            return None
        joint = (sums[:, None, :] + own[None, :, :]).reshape(-1, 3)
        sums, probability = _merge(joint, (probability[:, None] * chance[None, :]).ravel())
        if len(sums) > COUNTABLE:
            return None
    z = [np.abs(sums[:, c]) / spread for c, spread in enumerate(spreads) if spread > 0]
    return _law(np.maximum.reduce(z), probability)


def _merge(outcomes: Floats, probability: Floats) -> tuple[Floats, Floats]:
    """Equal outcomes as one, with their summed probability."""
    keys = np.round(outcomes / (ROUNDING / 10)).astype(np.int64)
    order = np.lexsort(keys.T)
    starts = np.flatnonzero(np.any(np.diff(keys[order], axis=0, prepend=keys[order[:1]] - 1) != 0, axis=1))
    return outcomes[order[starts]], np.add.reduceat(probability[order], starts)


def _drawn_law(strata: Sequence[_Weighted], spreads: Sequence[float], observed: float, draws: int, seed: int) -> _Law:
    """Distribution of max |z| over random relabellings, what was observed among them."""
    rng = np.random.default_rng(seed)
    sums = np.zeros((3, draws))
    classes: defaultdict[tuple[int, int], list[_Weighted]] = defaultdict(list)
    for weighted in strata:
        classes[len(weighted.stratum.base), len(weighted.stratum.cand)].append(weighted)
    for (t1, t2), members in classes.items():
        dealt = relabellings(t1, t2)
        for start in range(0, len(members), CHUNK):
            chunk = members[start : start + CHUNK]
            for weighted, table in zip(chunk, _tables(chunk, dealt, rng), strict=True):
                add = _pick if dealt.complete else _read
                add(sums, weighted.weights, table, rng, mirrored=dealt.mirrored)
    z = [np.abs(total) / spread for total, spread in zip(sums, spreads, strict=True) if spread > 0]
    return _law(np.append(np.maximum.reduce(z), observed), np.full(draws + 1, 1 / (draws + 1)))


def _tables(strata: Sequence[_Weighted], dealt: Relabellings, rng: np.random.Generator | None) -> Floats:
    """Mean differences of score and pass rate under shared relabellings, shape (strata, 2, relabellings).

    The relabellings may themselves be a sample: each stratum's trials are shuffled, so that what this sample lacks in
    balance does not add up over strata.
    """
    trials = np.array([w.stratum.base + w.stratum.cand for w in strata])
    if rng is not None and not dealt.complete:
        trials = np.stack([rng.permutation(t) for t in trials])
    return np.stack([product(trials[:, :, metric].copy(), dealt.weights) for metric in (SCORE, PASS)], axis=1)


def _mirrored(table: Floats) -> Floats:
    return np.concatenate((table, -table), axis=1)


def _pick(sums: Floats, weights: Sequence[float], table: Floats, rng: np.random.Generator, *, mirrored: bool) -> None:
    """Add one relabelling of a stratum to each draw, picked from all that there are."""
    outcomes = _mirrored(table) if mirrored else table
    picked = rng.integers(0, outcomes.shape[1], sums.shape[1], dtype=np.uint16)
    score, passes = (differences.take(picked) for differences in outcomes)
    for total, weight, differences in zip(sums, weights, (score, passes, passes), strict=True):
        np.add(total, weight * differences, out=total)


def _read(sums: Floats, weights: Sequence[float], table: Floats, rng: np.random.Generator, *, mirrored: bool) -> None:
    """Add one relabelling of a stratum to each draw, read from a sample of relabellings.

    They are in random order already. Reading them from a random place on, another one for each stratum, costs a tenth
    of picking them one by one; so does taking a block of them, or all their mirror images.
    """
    size = table.shape[1]
    for start in range(0, sums.shape[1], size):
        offset = int(rng.integers(0, size))
        sign = -1 if mirrored and rng.random() < 0.5 else 1
        stop = min(start + size, sums.shape[1])
        turn = min(stop, start + size - offset)
        for total, weight, differences in zip(sums, weights, (table[0], table[1], table[1]), strict=True):
            total[start:turn] += sign * weight * differences[offset : offset + turn - start]
            total[turn:stop] += sign * weight * differences[: stop - turn]
