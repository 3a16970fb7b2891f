"""Intervals for one sample: a pass rate, a mean score, and the quantiles they stand on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

from scipy import special

__all__ = [
    "ROUNDING",
    "Interval",
    "clip",
    "mean",
    "normal_quantile",
    "score_interval",
    "sd",
    "t_interval",
    "t_quantile",
    "unit_values",
    "wilson",
]

ROUNDING = 1e-9
"""Differences below this are float rounding, not effects; scores are rounded to as many digits."""


PRIOR_TRIALS = 0.5
"""How many trials of the largest spread a group's graded scores are moderated by."""


class Interval(NamedTuple):
    """A two-sided interval; both ends belong to it."""

    lower: float
    upper: float


def unit_values(values: Sequence[float], *, what: str = "score") -> list[float]:
    """The values as floats in [0, 1], rounded to 9 digits, so that equal scores compare equal.

    Args:
        values: Anything that turns into floats; bools count as 0 and 1.
        what: The noun for the message.

    Raises:
        ValueError: A value is NaN, infinite, or outside [0, 1] by more than 1e-9.
    """
    checked = []
    for value in values:
        number = float(value)
        if not -ROUNDING <= number <= 1 + ROUNDING:  # also false for NaN
            raise ValueError(f"a {what} of {number} is outside [0, 1]; divide by its maximum, leave out what has none")
        checked.append(min(1.0, max(0.0, round(number, 9))) + 0.0)  # + 0.0 turns -0.0 into 0.0
    return checked


def clip(interval: Interval, lower: float = 0.0, upper: float = 1.0) -> Interval:
    """The part of an interval that is possible."""
    return Interval(min(upper, max(lower, interval.lower)), max(lower, min(upper, interval.upper)))


@lru_cache(maxsize=64)
def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution at a probability in (0, 1)."""
    return NormalDist().inv_cdf(probability)


@lru_cache(maxsize=1024)
def t_quantile(probability: float, df: float) -> float:
    """Quantile of Student's t distribution.

    Args:
        probability: In (0, 1).
        df: Degrees of freedom, above 0; need not be whole.

    Raises:
        ValueError: `df` is not above 0: one value says nothing about its spread.
    """
    if not df > 0:
        raise ValueError(f"Student's t has no distribution at {df} degrees of freedom; at least two values are needed")
    return float(special.stdtrit(df, probability))


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean by exact summation, so that the order of the values does not change it.

    Raises:
        ValueError: There are no values.
    """
    if not values:
        raise ValueError("the mean of no values is unknown")
    return math.fsum(values) / len(values)


def sd(values: Sequence[float]) -> float | None:
    """Sample standard deviation (n - 1 in the denominator); None below two values.

    Values that differ by less than 1e-9 count as equal: the result is then exactly 0.
    """
    if len(values) < 2:
        return None
    if max(values) - min(values) < ROUNDING:
        return 0.0
    centre = mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def wilson(k: float, n: float, *, confidence: float = 0.95, z: float | None = None) -> Interval:
    """Wilson's score interval for a rate.

    Args:
        k: Successes in [0, n]; a sum of scores in [0, 1] (fractional) is fine.
        n: Trials, above 0; an effective number (fractional) is fine.
        confidence: Nominal coverage.
        z: Quantile to use in place of the normal one of `confidence`.

    Edges: the lower end is exactly 0 at k = 0 and the upper end exactly 1 at k = n; never a point.

    Raises:
        ValueError: n is not above 0, or k is outside [0, n].

    Source: Wilson (1927), JASA 22:209-212; recommended for small n by Brown, Cai & DasGupta (2001).
    """
    if not n > 0:
        raise ValueError(f"a rate of {n} trials is unknown; at least one trial is needed")
    if not -ROUNDING <= k <= n * (1 + ROUNDING):
        raise ValueError(f"{k} successes in {n} trials are impossible")
    quantile = normal_quantile(0.5 + confidence / 2) if z is None else z
    rate = min(1.0, max(0.0, k / n))
    square = quantile * quantile
    scale = 1 + square / n
    centre = (rate + square / (2 * n)) / scale
    half = quantile * math.sqrt(rate * (1 - rate) / n + square / (4 * n * n)) / scale
    return Interval(0.0 if rate == 0 else max(0.0, centre - half), 1.0 if rate == 1 else min(1.0, centre + half))


def t_interval(values: Sequence[float], *, confidence: float = 0.95) -> Interval:
    """Student's t interval for a mean: m ± t(n - 1) · s / √n, not clipped.

    Raises:
        ValueError: Fewer than two values. (Equal values give a point: `score_interval` handles them.)

    Source: Student (1908), Biometrika 6:1-25.
    """
    spread = sd(values)
    if spread is None:
        raise ValueError(f"a t interval needs at least two values, not {len(values)}")
    half = t_quantile(0.5 + confidence / 2, len(values) - 1) * spread / math.sqrt(len(values))
    centre = mean(values)
    return Interval(centre - half, centre + half)


def score_interval(values: Sequence[float], *, confidence: float = 0.95) -> tuple[Interval, str]:
    """Interval for a mean score in [0, 1], and the name of the method that gave it.

    Student's t, clipped to [0, 1], for scores that are as spread as passes and failures. Graded scores that agree by
    luck would make it too narrow (its measured coverage is 92 % at five trials), so their variance is moderated: it is
    at least (m(1 - m) / 2 + (n - 1) s²) / (n - 1/2), as if half a trial had had the largest spread that a mean in
    [0, 1] allows. With one value, or when all are equal, the sample says nothing about its spread at all: then
    Wilson's interval on the sum of the scores, which assumes that largest spread throughout.

    Args:
        values: Scores in [0, 1]; at least one.
        confidence: Nominal coverage.

    Returns:
        The interval and `t`, `moderated t` or `wilson`.

    Source: Student (1908), Biometrika 6:1-25; a moderated variance as in Smyth (2004), with a fixed prior weight that
    makes the measured coverage at least 93 % at 3 to 20 trials.
    """
    spread = sd(values)
    if not spread:
        return wilson(math.fsum(values), len(values), confidence=confidence), "wilson"
    centre, n = mean(values), len(values)
    moderated = (PRIOR_TRIALS * centre * (1 - centre) + (n - 1) * spread**2) / (n - 1 + PRIOR_TRIALS)
    if moderated <= spread**2:
        return clip(t_interval(values, confidence=confidence)), "t"
    half = t_quantile(0.5 + confidence / 2, n - 1) * math.sqrt(moderated / n)
    return clip(Interval(centre - half, centre + half)), "moderated t"
