"""Differences of two samples or of paired cases, with intervals: Newcombe, moderated t, clustered t, Fieller."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from .intervals import ROUNDING, Interval, clip, mean, sd, t_quantile, wilson

__all__ = [
    "PRIOR_DF",
    "Difference",
    "Tally",
    "combine_differences",
    "difference_of_differences",
    "fieller",
    "moderated_t",
    "moderated_variance",
    "newcombe",
    "paired_difference",
    "pooled_variance",
    "win_loss_tie",
]

PRIOR_DF = 4
"""Degrees of freedom that the run's mean variance counts for in one group's variance."""


class Difference(NamedTuple):
    """A difference (second minus first) and its interval."""

    delta: float
    interval: Interval


class Tally(NamedTuple):
    """How often the second value beats, loses to and equals the first."""

    wins: int
    losses: int
    ties: int


def newcombe(k1: float, n1: float, k2: float, n2: float, *, confidence: float = 0.95) -> Difference:
    """Difference of two rates, k2/n2 - k1/n1, with Newcombe's hybrid score interval.

    With the Wilson intervals (l1, u1) and (l2, u2) of the two rates it is
    d - √((p2 - l2)² + (u1 - p1)²) to d + √((u2 - p2)² + (p1 - l1)²), inside [-1, 1] by construction, never a point.

    Args:
        k1: Successes of the first sample, in [0, n1]; a sum of scores (fractional) is fine.
        n1: Its trials, above 0.
        k2: Successes of the second sample.
        n2: Its trials.
        confidence: Nominal coverage.

    Source: Newcombe (1998), Statistics in Medicine 17:873-890, method 10.
    """
    p1, p2 = k1 / n1, k2 / n2
    first, second = wilson(k1, n1, confidence=confidence), wilson(k2, n2, confidence=confidence)
    delta = p2 - p1
    lower = delta - math.hypot(p2 - second.lower, first.upper - p1)
    upper = delta + math.hypot(second.upper - p2, p1 - first.lower)
    return Difference(delta, clip(Interval(lower, upper), -1.0, 1.0))


def pooled_variance(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Variance within two samples, pooled over T1 + T2 - 2 degrees of freedom; None when there are none."""
    df = len(first) + len(second) - 2
    if df <= 0 or not first or not second:
        return None
    squares = math.fsum(
        (value - centre) ** 2 for sample in (first, second) for centre in (mean(sample),) for value in sample
    )
    return squares / df


def moderated_variance(
    first: Sequence[float], second: Sequence[float], run_variance: float, *, prior_df: float = PRIOR_DF
) -> float:
    """Variance within two samples that borrows from the run: (prior_df · s0² + SSW) / (prior_df + T1 + T2 - 2).

    Args:
        first: Values of one run, at least one.
        second: The same of the other run.
        run_variance: s0², the mean of `pooled_variance` over the run's groups.
        prior_df: How many degrees of freedom s0² counts for.

    Source: Smyth (2004), Statistical Applications in Genetics and Molecular Biology 3(1), with a fixed prior weight.
    """
    df = len(first) + len(second) - 2
    return (prior_df * run_variance + df * (pooled_variance(first, second) or 0.0)) / (prior_df + df)


def moderated_t(
    first: Sequence[float],
    second: Sequence[float],
    run_variance: float,
    *,
    prior_df: float = PRIOR_DF,
    confidence: float = 0.95,
) -> Difference:
    """Difference of two mean scores with a t interval whose variance borrows from the run.

    d ± t(prior_df + T1 + T2 - 2) · √(v (1/T1 + 1/T2)) with v of `moderated_variance`, clipped to [-1, 1]: few trials
    that agree by luck never give a point.

    Args:
        first: Scores in [0, 1], at least one.
        second: The same of the other run.
        run_variance: See `moderated_variance`.
        prior_df: See `moderated_variance`.
        confidence: Nominal coverage.

    Edges: where the whole run has no variance, Newcombe's interval on the sums of the scores.
    """
    spread = math.sqrt(moderated_variance(first, second, run_variance, prior_df=prior_df))
    if spread < ROUNDING:
        return newcombe(math.fsum(first), len(first), math.fsum(second), len(second), confidence=confidence)
    df = prior_df + len(first) + len(second) - 2
    half = t_quantile(0.5 + confidence / 2, df) * spread * math.sqrt(1 / len(first) + 1 / len(second))
    delta = mean(second) - mean(first)
    return Difference(delta, clip(Interval(delta - half, delta + half), -1.0, 1.0))


def paired_difference(first: Sequence[float], second: Sequence[float], *, confidence: float = 0.95) -> Difference:
    """Mean over cases of second - first, each case being one unit, with a t interval for cases like these.

    mean ± t(C - 1) · sd / √C, clipped to [-1, 1]: the clustered standard error with its small-sample factor.

    Args:
        first: One value a case, in [0, 1] (a mean over its trials and conditions); at least one case.
        second: The same, case by case.
        confidence: Nominal coverage.

    Edges: with one case, or when all differences are equal, t gives nothing or a point: then Newcombe's interval on
    the two means with n = C.

    Raises:
        ValueError: No cases, or unequal numbers of them.

    Source: Miller (2024), "Adding Error Bars to Evals" (arXiv 2411.00640), with t for the normal quantile.
    """
    differences = [b - a for a, b in zip(first, second, strict=True)]
    delta, spread, cases = mean(differences), sd(differences), len(differences)
    if spread is None or spread < ROUNDING:
        interval = newcombe(math.fsum(first), cases, math.fsum(second), cases, confidence=confidence).interval
        return Difference(delta, interval)
    half = t_quantile(0.5 + confidence / 2, cases - 1) * spread / math.sqrt(cases)
    return Difference(delta, clip(Interval(delta - half, delta + half), -1.0, 1.0))


def combine_differences(first: Difference, second: Difference) -> Difference:
    """Difference of two independent differences, second - first, in [-2, 2].

    The two intervals are combined end by end: the distance from the estimate to each end is the root of the summed
    squares of the distances that lead to it.

    Source: Zou & Donner (2008), Statistics in Medicine 27:1693-1702 (method of variance estimates recovery).
    """
    delta = second.delta - first.delta
    lower = delta - math.hypot(second.delta - second.interval.lower, first.interval.upper - first.delta)
    upper = delta + math.hypot(second.interval.upper - second.delta, first.delta - first.interval.lower)
    return Difference(delta, clip(Interval(lower, upper), -2.0, 2.0))


def difference_of_differences(
    controls: tuple[Sequence[float], Sequence[float]],
    deciding: tuple[Sequence[float], Sequence[float]],
    *,
    confidence: float = 0.95,
) -> Difference:
    """How much more the deciding groups changed than the controls of the same cases, in [-2, 2].

    Args:
        controls: (baseline, candidate) of the control groups: one mean a case each, in [0, 1]; at least one case.
        deciding: The same of the deciding groups, case by case.
        confidence: Nominal coverage.

    A t interval over cases, as in `paired_difference`; where t gives nothing or a point, `combine_differences` of both.
    """
    first = [b - a for a, b in zip(*controls, strict=True)]
    second = [b - a for a, b in zip(*deciding, strict=True)]
    differences = [b - a for a, b in zip(first, second, strict=True)]
    delta, spread, cases = mean(differences), sd(differences), len(differences)
    if spread is None or spread < ROUNDING:
        return combine_differences(
            paired_difference(*controls, confidence=confidence), paired_difference(*deciding, confidence=confidence)
        )
    half = t_quantile(0.5 + confidence / 2, cases - 1) * spread / math.sqrt(cases)
    return Difference(delta, clip(Interval(delta - half, delta + half), -2.0, 2.0))


def win_loss_tie(first: Sequence[float], second: Sequence[float]) -> Tally:
    """Outcome of all T1 · T2 cross pairs of two samples, as in the Mann-Whitney statistic.

    Pairing trials by their index would make the answer depend on the order in which they ran. Values that differ by
    less than 1e-9 tie.
    """
    ordered = sorted(first)
    wins = sum(bisect_left(ordered, value - ROUNDING) for value in second)
    not_losses = sum(bisect_right(ordered, value + ROUNDING) for value in second)
    return Tally(wins, len(first) * len(second) - not_losses, not_losses - wins)


_CANCELLED = 1e-12
"""A difference of two products that is a smaller share of them is their rounding."""


def fieller(numerator: Sequence[float], denominator: Sequence[float], *, confidence: float = 0.95) -> Difference | None:
    """Ratio of two means over the same cases with Fieller's interval; None where it is not bounded.

    The interval holds each ratio r for which the t statistic of numerator - r · denominator, case by case, is inside
    ± t(C - 1). It is bounded only when the mean of the denominator is itself clearly not 0.

    Args:
        numerator: One value a case; at least two cases.
        denominator: The same, case by case.
        confidence: Nominal coverage.

    Returns:
        The ratio (as `delta`) and its interval, not clipped. None ("not estimable") with fewer than two cases, when
        the interval is unbounded, or when it is a point because numerator and denominator are proportional.

    Source: Fieller (1954), J. R. Statist. Soc. B 16:175-185.
    """
    cases = len(numerator)
    if cases != len(denominator):
        raise ValueError(f"{cases} numerators and {len(denominator)} denominators; each case needs both")
    if cases < 2:
        return None
    top, bottom = mean(numerator), mean(denominator)
    square = t_quantile(0.5 + confidence / 2, cases - 1) ** 2 / (cases * (cases - 1))
    var_top = math.fsum((a - top) ** 2 for a in numerator) * square
    var_bottom = math.fsum((b - bottom) ** 2 for b in denominator) * square
    covariance = math.fsum((a - top) * (b - bottom) for a, b in zip(numerator, denominator, strict=True)) * square
    quadratic = bottom**2 - var_bottom
    if quadratic <= ROUNDING:
        return None
    linear = top * bottom - covariance
    radicand = linear**2 - quadratic * (top**2 - var_top)
    # Of two numbers that cancel only rounding is left, and its root would look like a width.
    if radicand <= _CANCELLED * max(linear**2, quadratic * top**2):
        return None
    root = math.sqrt(radicand)
    return Difference(top / bottom, Interval((linear - root) / quadratic, (linear + root) / quadratic))
