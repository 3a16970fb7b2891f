"""The overall test: relabel the trials of every group at once, for score and pass rate together."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .intervals import ROUNDING, normal_quantile
from .permutation import RELABELLINGS, SEED, Relabellings, relabellings

__all__ = ["MetricTest", "StratifiedTest", "Stratum", "stratified_test"]

Floats = NDArray[np.float64]
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
    """Probability that either metric is as extreme as this one is; 1 when nothing can differ."""


class StratifiedTest(NamedTuple):
    """What relabelling all groups at once says."""

    score: MetricTest
    pass_rate: MetricTest
    p: float
    """Of both together: the smaller of their p."""
    critical: float
    """How many spreads a delta must reach to be decided at the level."""
    exact: bool
    """Whether the distribution was computed, not drawn."""


class _Law(NamedTuple):
    """Distribution of the statistic: its values, ascending, and the probability of each; near-equal ones are one."""

    values: Floats
    mid_p: Floats
    """P(more extreme) + P(as extreme) / 2 at each value."""

    def at(self, observed: float) -> float:
        """The mid-p of an observed value, which is one of the values."""
        nearest = np.argmin(np.abs(self.values - observed))
        return float(self.mid_p[nearest])

    def critical(self, level: float) -> float:
        """The smallest value whose mid-p is at most the level; beyond the largest where there is none."""
        allowed = np.flatnonzero(self.mid_p <= level)
        return float(self.values[allowed[0]] if len(allowed) else self.values[-1] + 1)


def _law(values: Floats, probability: Floats) -> _Law:
    order = np.argsort(values, kind="stable")
    values, probability = values[order], probability[order]
    starts = np.flatnonzero(np.diff(values, prepend=-1.0) > ROUNDING)
    blocks = np.add.reduceat(probability, starts)
    at_least = np.cumsum(blocks[::-1])[::-1]
    return _Law(values[starts], np.minimum(1.0, at_least - blocks / 2))


def _mean_difference(stratum: Stratum, metric: int) -> float:
    mean_base = math.fsum(trial[metric] for trial in stratum.base) / len(stratum.base)
    mean_cand = math.fsum(trial[metric] for trial in stratum.cand) / len(stratum.cand)
    return mean_cand - mean_base


def _variance(stratum: Stratum, metric: int) -> float:
    """Variance of the group's mean difference over its relabellings: s² (1/T1 + 1/T2), s² being that of all results."""
    pooled = [trial[metric] for trial in (*stratum.base, *stratum.cand)]
    if max(pooled) - min(pooled) < ROUNDING:
        return 0.0
    centre = math.fsum(pooled) / len(pooled)
    square = math.fsum((value - centre) ** 2 for value in pooled) / (len(pooled) - 1)
    return square * (1 / len(stratum.base) + 1 / len(stratum.cand))


def stratified_test(
    strata: Sequence[Stratum], *, level: float, draws: int = RELABELLINGS, seed: int = SEED
) -> StratifiedTest:
    """Relabelling test of the overall difference, with max(|z of score|, |z of pass rate|) as its statistic.

    When nothing changed, the trials of both runs of a group are exchangeable. All groups are relabelled at once and
    independently; each metric's z is the weighted sum of mean differences divided by its standard deviation over the
    relabellings. The p-value is the mid-p, for the distribution is coarse in small runs. It speaks for these cases.

    Args:
        strata: The groups that decide; their weights should sum to 1.
        level: That `critical` is to be exceeded at.
        draws: Relabellings that are drawn.
        seed: Of the draws.

    Edges: groups whose results are all equal drop out by themselves; with no other group p is 1. Where the pass
    counts alone decide, with equal weights and numbers of trials, the distribution is computed exactly.

    The order of groups and of trials changes nothing: groups are put in order by their contents first.

    Source: Fisher's permutation test, stratified; mid-p: Lancaster (1961), JASA 56:223-234; the maximum over metrics:
    Westfall & Young (1993), Resampling-Based Multiple Testing.
    """
    ordered = sorted(strata, key=lambda s: (len(s.base), len(s.cand), s.weight, s.base, s.cand))
    deltas = [math.fsum(s.weight * _mean_difference(s, metric) for s in ordered) for metric in (0, 1)]
    variances = [[_variance(s, metric) for s in ordered] for metric in (0, 1)]
    spreads = [
        math.sqrt(math.fsum(s.weight**2 * v for s, v in zip(ordered, variances[metric], strict=True)))
        for metric in (0, 1)
    ]
    alive = [s for s, a, b in zip(ordered, *variances, strict=True) if a > 0 or b > 0]
    if not alive:
        nothing = [MetricTest(delta, 0.0, 1.0) for delta in deltas]
        return StratifiedTest(nothing[0], nothing[1], 1.0, normal_quantile(1 - level / 2), exact=True)
    exact = _passes_decide(alive)
    observed = [abs(delta) / spread if spread > 0 else 0.0 for delta, spread in zip(deltas, spreads, strict=True)]
    law = _count_law(alive, spreads[1]) if exact else _drawn_law(alive, spreads, max(observed), draws, seed)
    metrics = [
        MetricTest(delta, spread, law.at(z) if spread > 0 else 1.0)
        for delta, spread, z in zip(deltas, spreads, observed, strict=True)
    ]
    return StratifiedTest(metrics[0], metrics[1], min(m.p for m in metrics), law.critical(level), exact)


def _passes_decide(strata: Sequence[Stratum]) -> bool:
    """Whether every score is a fixed multiple of its pass bit plus a constant of the group, with equal weights."""
    slopes, shapes = set(), set()
    for stratum in strata:
        by_bit: dict[float, set[float]] = {0.0: set(), 1.0: set()}
        for score, bit in (*stratum.base, *stratum.cand):
            by_bit[bit].add(score)
        if not (len(by_bit[0.0]) == len(by_bit[1.0]) == 1):
            return False
        slopes.add(round(min(by_bit[1.0]) - min(by_bit[0.0]), 8))
        shapes.add((len(stratum.base), len(stratum.cand), round(stratum.weight, 12)))
    return len(slopes) == 1 and len(shapes) == 1


def _count_law(strata: Sequence[Stratum], spread: float) -> _Law:
    """Exact distribution of |z|: the convolution of the groups' hypergeometric pass counts."""
    t1, t2, weight = len(strata[0].base), len(strata[0].cand), strata[0].weight
    totals = Counter(round(sum(bit for _, bit in (*s.base, *s.cand))) for s in strata)
    size = 1 + sum(min(passes, t2) * groups for passes, groups in totals.items())
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    for passes, groups in sorted(totals.items()):
        ways = [math.comb(passes, k) * math.comb(t1 + t2 - passes, t2 - k) for k in range(min(passes, t2) + 1)]
        spectrum *= np.fft.rfft(np.array(ways) / math.comb(t1 + t2, t2), size) ** groups
    probability = np.clip(np.fft.irfft(spectrum, size), 0.0, None)
    expected = sum(passes * groups for passes, groups in totals.items()) * t2 / (t1 + t2)
    z = np.abs(np.arange(size) - expected) * weight * (1 / t1 + 1 / t2) / spread
    return _law(z, probability / probability.sum())


def _drawn_law(strata: Sequence[Stratum], spreads: Sequence[float], observed: float, draws: int, seed: int) -> _Law:
    """Distribution of max |z| over random relabellings, what was observed among them."""
    rng = np.random.default_rng(seed)
    sums = np.zeros((2, draws))
    classes: defaultdict[tuple[int, int], list[Stratum]] = defaultdict(list)
    for stratum in strata:
        classes[len(stratum.base), len(stratum.cand)].append(stratum)
    for (t1, t2), members in classes.items():
        dealt = relabellings(t1, t2)
        for start in range(0, len(members), CHUNK):
            chunk = members[start : start + CHUNK]
            for stratum, table in zip(chunk, _tables(chunk, dealt, rng), strict=True):
                _add(sums, stratum.weight, table, dealt, rng)
    z = [np.abs(total) / spread for total, spread in zip(sums, spreads, strict=True) if spread > 0]
    return _law(np.append(np.maximum.reduce(z), observed), np.full(draws + 1, 1 / (draws + 1)))


def _tables(strata: Sequence[Stratum], dealt: Relabellings, rng: np.random.Generator) -> Floats:
    """Mean differences of strata under shared relabellings, shape (strata, metrics, relabellings).

    The relabellings may themselves be a sample: each stratum's trials are shuffled, so that what this sample lacks in
    balance does not add up over strata.
    """
    trials = np.array([stratum.base + stratum.cand for stratum in strata])
    if not dealt.complete:
        trials = np.stack([rng.permutation(t) for t in trials])
    tables = np.stack([np.ascontiguousarray(trials[:, :, metric]) @ dealt.weights for metric in (0, 1)], axis=1)
    return np.concatenate((tables, -tables), axis=2) if dealt.mirrored else tables


def _add(sums: Floats, weight: float, table: Floats, dealt: Relabellings, rng: np.random.Generator) -> None:
    """Add one random relabelling of a stratum to each draw."""
    size, draws = table.shape[1], sums.shape[1]
    if dealt.complete:
        picked = rng.integers(0, size, draws, dtype=np.uint16)
        for total, differences in zip(sums, table, strict=True):
            np.add(total, weight * differences.take(picked), out=total)
        return
    # The relabellings are in random order already. Reading them from a random place on, another one for each stratum,
    # costs a tenth of picking them one by one. Blocks are no longer than the part that its mirror image follows.
    block = dealt.weights.shape[1]
    cycle = weight * np.concatenate((table, table[:, :block]), axis=1)
    for start in range(0, draws, block):
        offset, length = int(rng.integers(0, size)), min(block, draws - start)
        sums[:, start : start + length] += cycle[:, offset : offset + length]
