"""Bootstrap intervals for means: percentile, BCa, and resampling whole cases."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from .intervals import ROUNDING, Interval, normal_quantile, t_quantile

__all__ = ["RESAMPLES", "bca", "cluster_bootstrap", "percentile", "resampled_means"]

RESAMPLES = 10_000
SEED = 42
FEWEST_CASES = 5
"""Below, resampled cases say too little of others: measured coverage at 3 cases is 85 %."""
CELLS = 1_000_000
"""Indices drawn at once: 8 MB."""


def resampled_means(values: ArrayLike, *, resamples: int = RESAMPLES, seed: int = SEED) -> NDArray[np.float64]:
    """Means of samples drawn with replacement.

    Args:
        values: Shape (n,) or (n, m); a row is drawn as a whole. Rows are put in order first, so that their order
            changes nothing.
        resamples: How many samples.
        seed: Of numpy's default generator.

    Returns:
        Shape (resamples,) or (resamples, m).
    """
    rows = np.atleast_2d(np.asarray(values, dtype=np.float64).T).T
    rows = rows[np.lexsort(rows.T[::-1])]
    rng = np.random.default_rng(seed)
    means = np.empty((resamples, rows.shape[1]))
    step = max(1, CELLS // len(rows))
    for start in range(0, resamples, step):
        picked = rng.integers(0, len(rows), (min(step, resamples - start), len(rows)), dtype=np.int32)
        for column in range(rows.shape[1]):
            means[start : start + step, column] = rows[:, column].take(picked).mean(axis=1)
    return means[:, 0] if np.ndim(values) == 1 else means


def _quantiles(means: NDArray[np.float64], lower: float, upper: float) -> Interval:
    low, high = np.quantile(means, [lower, upper])
    return Interval(float(low), float(high))


def _constant(values: ArrayLike) -> bool:
    return bool(np.ptp(np.asarray(values, dtype=np.float64)) < ROUNDING)


def percentile(
    values: Sequence[float], *, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = SEED
) -> Interval | None:
    """Percentile bootstrap interval for a mean; None for equal values, which would give a point.

    Too narrow for small samples (it lacks the factor √(n / (n - 1)) and t's tails): see `cluster_bootstrap`.

    Source: Efron (1979), Annals of Statistics 7:1-26.
    """
    if _constant(values):
        return None
    tail = (1 - confidence) / 2
    return _quantiles(resampled_means(values, resamples=resamples, seed=seed), tail, 1 - tail)


def bca(
    values: Sequence[float], *, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = SEED
) -> Interval | None:
    """Bias-corrected and accelerated bootstrap interval for a mean; None for equal values, which have no acceleration.

    Source: Efron (1987), JASA 82:171-185.
    """
    if _constant(values):
        return None
    sample = np.sort(np.asarray(values, dtype=np.float64))
    means = resampled_means(sample, resamples=resamples, seed=seed)
    centre = sample.mean()
    below = float(((means < centre - ROUNDING).mean() + (means <= centre + ROUNDING).mean()) / 2)
    bias = normal_quantile(min(max(below, 0.5 / resamples), 1 - 0.5 / resamples))
    influence = sample - centre  # of leaving each value out, up to a factor that cancels
    acceleration = float((influence**3).sum() / (6 * (influence**2).sum() ** 1.5))
    shifts = [bias + normal_quantile(end) for end in ((1 - confidence) / 2, (1 + confidence) / 2)]
    ends = [float(special.ndtr(bias + shift / (1 - acceleration * shift))) for shift in shifts]
    return _quantiles(means, ends[0], ends[1])


def cluster_bootstrap(
    cases: Sequence[Sequence[float]], *, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = SEED
) -> list[Interval | None]:
    """Intervals for means over cases, whole cases being resampled, with expanded percentiles.

    The percentiles are those of Φ(-√(C / (C - 1)) · t(C - 1)) in place of the nominal ones: this undoes the percentile
    bootstrap's narrowness in small samples.

    Args:
        cases: Shape (C, m): for each case m numbers that belong together.
        confidence: Nominal coverage.
        resamples: How many times C cases are drawn.
        seed: Of the draws.

    Returns:
        One interval for each of the m means; None with fewer than five cases or when all cases agree.

    Source: Davison & Hinkley (1997), section 3.8 (clusters); Hesterberg (2015), The American Statistician 69:371-386.
    """
    table = np.asarray(cases, dtype=np.float64)
    if len(table) < FEWEST_CASES:
        return [None] * table.shape[1]
    quantile = t_quantile(0.5 + confidence / 2, len(table) - 1) * math.sqrt(len(table) / (len(table) - 1))
    tail = float(special.ndtr(-quantile))
    means = resampled_means(table, resamples=resamples, seed=seed)
    return [
        None if _constant(column) else _quantiles(sample, tail, 1 - tail)
        for column, sample in zip(table.T, means.T, strict=True)
    ]
