"""The rule of the first implementation, kept for comparison: paired percentile bootstrap with one fixed seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .intervals import Interval, mean

__all__ = ["PairedBootstrap", "mulberry32", "paired_bootstrap"]

RESAMPLES = 10_000
SEED = 42
CELLS = 2_000_000
"""Random numbers made at once: 16 MB."""
FEW = 255
"""Pairs up to which the resampled indices are kept: 2.5 MB at most."""


class PairedBootstrap(NamedTuple):
    """Mean difference of trials paired by index, and its percentile interval: a point where all pairs differ alike."""

    delta: float
    interval: Interval
    pairs: int
    left_out: int
    """Trials without a partner."""


def mulberry32(seed: int, n: int, start: int = 0) -> NDArray[np.float64]:
    """Numbers start .. start + n - 1 of the 32-bit generator mulberry32, in [0, 1).

    Source: Tommy Ettinger's mulberry32 (public domain). Each number depends on its position alone.
    """
    position = np.arange(start + 1, start + n + 1, dtype=np.uint64)
    state = ((position * 0x6D2B79F5 + seed) & 0xFFFFFFFF).astype(np.uint32)
    mixed = (state ^ (state >> 15)) * (state | np.uint32(1))
    mixed ^= mixed + (mixed ^ (mixed >> 7)) * (mixed | np.uint32(61))
    mixed ^= mixed >> 14
    return mixed / 2.0**32


def _picks(pairs: int, resamples: int, seed: int) -> Iterator[NDArray[np.uint32]]:
    """Indices of the resampled pairs, some resamples at a time, in the order in which the generator gives them."""
    step = max(1, CELLS // pairs)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        yield np.floor(mulberry32(seed, rows * pairs, start * pairs) * pairs).astype(np.uint32).reshape(rows, pairs)


@lru_cache(maxsize=8)
def _few_picks(pairs: int, resamples: int, seed: int) -> NDArray[np.uint8]:
    """All indices at once: each group with as many trials draws the same ones."""
    return np.concatenate([rows.astype(np.uint8) for rows in _picks(pairs, resamples, seed)])


def paired_bootstrap(
    base: Sequence[float], cand: Sequence[float], *, resamples: int = RESAMPLES, seed: int = SEED
) -> PairedBootstrap:
    """Percentile bootstrap of the mean difference of trials paired by index, 95 %.

    Resamples draw pairs with replacement; the ends are the 2.5 and 97.5 percentiles with linear interpolation. Every
    group draws the same numbers, pairs do not belong together, and where all pairs differ alike the interval is a
    point: with few trials it therefore finds changes where nothing changed. It is here to show what it would have said.

    Args:
        base: Baseline values in the order of their trials; at least one.
        cand: Candidate values; trials beyond the shorter run are left out.
        resamples: How many.
        seed: Of `mulberry32`.

    Source: agent-tty's evaluation statistics (TypeScript), reproduced bit for bit.
    """
    pairs = min(len(base), len(cand))
    if not pairs:
        raise ValueError("paired-bootstrap needs at least one trial in both runs")
    differences = np.array([c - b for b, c in zip(base, cand, strict=False)])
    delta, left_out = mean(differences.tolist()), abs(len(base) - len(cand))
    if pairs < 2:
        return PairedBootstrap(delta, Interval(delta, delta), pairs, left_out)
    picks = [_few_picks(pairs, resamples, seed)] if pairs <= FEW else _picks(pairs, resamples, seed)
    means = np.concatenate([differences.take(rows).mean(axis=1) for rows in picks])
    means.sort()
    return PairedBootstrap(delta, Interval(_quantile(means, 0.025), _quantile(means, 0.975)), pairs, left_out)


def _quantile(ascending: NDArray[np.float64], probability: float) -> float:
    position = probability * (len(ascending) - 1)
    below, above = math.floor(position), math.ceil(position)
    share = position - below
    return float(ascending[below] * (1 - share) + ascending[above] * share)
