"""Exact relabelling tests within a group: could chance alone have dealt its trials to the two runs like this?"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .intervals import ROUNDING

__all__ = [
    "RELABELLINGS",
    "Chance",
    "RelabellingTests",
    "Relabellings",
    "product",
    "relabelling_p",
    "relabelling_tests",
    "relabellings",
]

RELABELLINGS = 20_000
"""Up to this many relabellings all are counted; beyond, as many are drawn with a fixed seed."""
SEED = 0
COUNTABLE = 2_000
"""Up to this many ways to deal the distinct values, counting them is cheaper than going through all relabellings."""
CHUNK = 64
"""Groups in one matrix product: 64 groups by 20,000 relabellings are 10 MB."""
ONE_THREAD = 250_000
"""Multiplications up to which OpenBLAS stays on one thread (2^18). On a busy machine its threads wait for each other:
a product in pieces then costs a tenth of the processor time."""
UNITS = 10**9
"""Scores are whole numbers of 1e-9, so that sums of them are exact and ties are ties."""

Floats = NDArray[np.float64]


class Relabellings(NamedTuple):
    """Ways to deal T1 + T2 pooled trials to two runs."""

    weights: Floats
    """Shape (T1 + T2, R): pooled scores times a column is candidate mean minus baseline mean."""
    mirrored: bool
    """Whether each column also stands for its mirror image (T1 = T2: the same difference with the other sign)."""
    complete: bool
    """Whether these are all there are."""


class Chance(NamedTuple):
    """What a family of groups attains by chance: E(t) is the sum of `share` up to `attainable` <= t."""

    attainable: Floats
    """p-values that some group can attain, ascending, none above the horizon."""
    share: Floats
    """By how much each raises the expected number of groups with so small a p."""


class RelabellingTests(NamedTuple):
    """The tests of a family of groups."""

    p: list[float]
    """One p-value a group, in order."""
    chance: Chance


class _Pair(NamedTuple):
    """One group's scores in units, each run sorted."""

    base: list[int]
    cand: list[int]


def product(rows: Floats, columns: Floats) -> Floats:
    """`rows @ columns`, in pieces that are computed on one thread."""
    result = np.empty((rows.shape[0], columns.shape[1]))
    width = max(1, ONE_THREAD // rows.size)
    for start in range(0, columns.shape[1], width):
        piece = slice(start, start + width)
        np.matmul(rows, columns[:, piece], out=result[:, piece])
    return result


class _Law(NamedTuple):
    """Distribution of |mean difference| over all relabellings, most extreme first; nearly equal values are one."""

    least: tuple[int, ...]
    """The smallest statistic of each block of ties."""
    tail: tuple[float, ...]
    """Probability of a statistic as extreme as the block or more."""


@lru_cache(maxsize=16)
def relabellings(t1: int, t2: int, limit: int = RELABELLINGS, seed: int = SEED) -> Relabellings:
    """All C(T1 + T2, T2) relabellings of two runs when there are at most `limit`, else `limit` random ones.

    The pooled order is baseline trials, then candidate trials. Among random ones the first is what was observed, so
    that a p-value is never 0.
    """
    total = t1 + t2
    mirrored = t1 == t2
    share = 2 if mirrored else 1
    complete = math.comb(total, t2) <= limit
    if complete:
        # With equal runs, those that give the first trial to the candidate: the others are their mirror images.
        first = 1 if mirrored else 0
        rest = list(combinations(range(first, total), t2 - first))
        taken = np.zeros((len(rest), total), dtype=bool)
        taken[:, :first] = True
        taken[np.arange(len(rest))[:, None], np.array(rest, dtype=np.intp).reshape(len(rest), -1)] = True
    else:
        rows = limit // share
        order = np.argsort(np.random.default_rng(seed).random((rows, total)), axis=1)
        taken = np.zeros((rows, total), dtype=bool)
        taken[np.arange(rows)[:, None], order[:, :t2]] = True
        taken[0] = np.arange(total) >= t1
    return Relabellings(np.ascontiguousarray(np.where(taken, 1 / t2, -1 / t1).T), mirrored, complete)


def _units(values: Sequence[float]) -> list[int]:
    return sorted(round(value * UNITS) for value in values)


def _ways(counts: Sequence[int], draws: int) -> int:
    """Number of ways to draw `draws` values when only their counts matter."""
    ways = [1] + [0] * draws
    for count in counts:
        ways = [sum(ways[i - x] for x in range(min(count, i) + 1)) for i in range(draws + 1)]
    return ways[draws]


@lru_cache(maxsize=256)
def _law(values: tuple[int, ...], counts: tuple[int, ...], t2: int) -> _Law:
    """The exact law when few distinct values are dealt: a multivariate hypergeometric sum.

    The statistic is N · (candidate sum) - T2 · (total sum), that is T1 · T2 times the mean difference in units.
    """
    size, total = sum(counts), sum(v * c for v, c in zip(values, counts, strict=True))
    states: dict[tuple[int, int], int] = {(0, 0): 1}
    left = size
    for value, count in zip(values, counts, strict=True):
        left -= count
        grown: defaultdict[tuple[int, int], int] = defaultdict(int)
        for (taken, dealt), ways in states.items():
            for more in range(max(0, t2 - taken - left), min(count, t2 - taken) + 1):
                grown[taken + more, dealt + more * value] += ways * math.comb(count, more)
        states = grown
    by_size: defaultdict[int, int] = defaultdict(int)
    for (_, dealt), ways in states.items():
        by_size[abs(size * dealt - t2 * total)] += ways
    sizes = sorted(by_size, reverse=True)
    least, tail, seen = [], [], 0
    for size_here, next_size in zip_longest(sizes, sizes[1:]):
        seen += by_size[size_here]
        if next_size is None or size_here - next_size > size * size:  # as far apart as rounding can bring equal scores
            least.append(size_here)
            tail.append(seen / math.comb(size, t2))
    return _Law(tuple(least), tuple(tail))


def _tail(law: _Law, pair: _Pair) -> float:
    size = len(pair.base) + len(pair.cand)
    observed = abs(size * sum(pair.cand) - len(pair.cand) * (sum(pair.base) + sum(pair.cand)))
    return next(tail for least, tail in zip(law.least, law.tail, strict=True) if least <= observed)


def _attained(law: _Law, horizon: float) -> Chance:
    tail = np.array([tail for tail in law.tail if tail <= horizon * (1 + ROUNDING)])
    return Chance(tail, np.diff(tail, prepend=0.0))


def _multiply(pairs: Sequence[_Pair], horizon: float, limit: int, seed: int) -> tuple[Floats, Chance]:
    """p-values of groups with equal numbers of trials, by one matrix of relabellings; and what they attain."""
    weights = relabellings(len(pairs[0].base), len(pairs[0].cand), limit, seed).weights
    columns = weights.shape[1]
    reach = min(columns - 1, int(horizon * columns) + 1)
    tolerance = 4.0  # units: what rounding to 9 digits can do to a difference of two means
    p, shares = [], np.zeros(reach + 1)
    for start in range(0, len(pairs), CHUNK):
        chunk = pairs[start : start + CHUNK]
        statistics = product(np.array([pair.base + pair.cand for pair in chunk], dtype=np.float64), weights)
        np.abs(statistics, out=statistics)
        observed = np.array([abs(sum(c) / len(c) - sum(b) / len(b)) for b, c in chunk])
        p.append((statistics >= observed[:, None] - tolerance).mean(axis=1))
        statistics.sort(axis=1)
        # The m most extreme are all the relabellings of some p-value where the next one is less extreme by a gap.
        rows, last = np.nonzero((np.diff(statistics[:, columns - reach - 1 :], axis=1) > tolerance)[:, ::-1])
        attained = last + 1
        before = np.where(np.diff(rows, prepend=-1) > 0, 0, np.concatenate(([0], attained[:-1])))
        shares += np.bincount(attained, weights=attained - before, minlength=reach + 1)
    found = np.flatnonzero(shares)
    return np.concatenate(p), Chance(found / columns, shares[found] / columns)


def _merge(parts: Sequence[Chance], horizon: float) -> Chance:
    attainable = np.concatenate([part.attainable for part in parts] or [np.empty(0)])
    share = np.concatenate([part.share for part in parts] or [np.empty(0)])
    order = np.argsort(attainable, kind="stable")
    order = order[attainable[order] <= horizon * (1 + ROUNDING)]
    attainable, share = attainable[order], share[order]
    starts = np.flatnonzero(np.diff(attainable, prepend=-1.0) > ROUNDING * attainable)
    return Chance(attainable[starts], np.add.reduceat(share, starts) if len(starts) else share)


def relabelling_tests(
    base: Sequence[Sequence[float]],
    cand: Sequence[Sequence[float]],
    *,
    horizon: float = 0.10,
    limit: int = RELABELLINGS,
    seed: int = SEED,
) -> RelabellingTests:
    """Two-sided relabelling (permutation) test of the mean difference in each group, and their family's chances.

    p is the share of relabellings of a group's own T1 + T2 results with a mean difference at least as large as the
    observed one. It holds for any scores, ties, constant runs and unequal numbers of trials, and needs no model. All
    relabellings count when there are at most `limit` of them or few distinct values; else `limit` random ones.

    Args:
        base: For each group its baseline scores in [0, 1], in any order; empty when it has none.
        cand: The same of the candidate.
        horizon: Chances are worked out for p-values up to this one.
        limit: Most relabellings that are gone through.
        seed: Of the random ones.

    Returns:
        One p a group: 1 where a run has no trial or all results are equal. In `chance` the family's
        E(t) = Σ F_j(t), where F_j(t) = P(p_j <= t) over the relabellings of group j is the largest p <= t that the
        group can attain.

    Source: Fisher (1935); Pitman (1937), J. R. Statist. Soc. Suppl. 4:119-130.
    """
    p = [1.0] * len(base)
    counted: dict[tuple[tuple[int, ...], tuple[int, ...], int], tuple[Chance, list[int]]] = {}
    many: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    pairs = [_Pair(_units(b), _units(c)) for b, c in zip(base, cand, strict=True)]
    for index, pair in enumerate(pairs):
        distinct = dict(sorted(Counter(pair.base + pair.cand).items()))
        if not pair.base or not pair.cand or len(distinct) == 1:
            continue
        if len(distinct) <= len(pair.cand) + 2 and _ways(list(distinct.values()), len(pair.cand)) <= COUNTABLE:
            key = (tuple(distinct), tuple(distinct.values()), len(pair.cand))
            law = _law(*key)
            p[index] = _tail(law, pair)
            counted.setdefault(key, (_attained(law, horizon), []))[1].append(index)
        else:
            many[len(pair.base), len(pair.cand)].append(index)
    parts = [Chance(chance.attainable, chance.share * len(groups)) for chance, groups in counted.values()]
    for indices in many.values():
        found, chance = _multiply([pairs[index] for index in indices], horizon, limit, seed)
        parts.append(chance)
        for index, value in zip(indices, found, strict=True):
            p[index] = float(value)
    return RelabellingTests(p, _merge(parts, horizon))


def relabelling_p(base: Sequence[float], cand: Sequence[float]) -> float:
    """The p-value of `relabelling_tests` for one group."""
    return relabelling_tests([base], [cand]).p[0]
