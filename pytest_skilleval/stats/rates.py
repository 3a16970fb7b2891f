"""Rates over repeated trials: pass@k, pass^k, flip rates, and rates of many cases clustered by case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypedDict

from .intervals import ROUNDING, Interval, mean, sd, t_quantile, wilson

__all__ = [
    "Rate",
    "case_flip_rate",
    "clustered_rate",
    "flip_rate",
    "flip_rate_between",
    "lane_rate",
    "pass_at_k",
    "pass_hat_k",
    "rate",
    "routing",
]

NOT_MEASURED = "none"
"""The method of a rate that has no trials."""


class Rate(TypedDict):
    """A share, its 95 % interval and what it stands on; None where nothing was measured."""

    rate: float | None
    ci: list[float] | None
    n: int
    method: str


def rate(k: int, n: int, *, confidence: float = 0.95) -> Rate:
    """A pass rate of independent trials with Wilson's interval; no trials give None, not 0."""
    if n == 0:
        return Rate(rate=None, ci=None, n=0, method=NOT_MEASURED)
    return Rate(rate=k / n, ci=list(wilson(k, n, confidence=confidence)), n=n, method="wilson")


def _check_counts(n: int, c: int, k: int) -> None:
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"{k} draws from {n} trials with {c} passes are impossible; k must lie in 1..{n}, c in 0..{n}")


def pass_at_k(n: int, c: int, k: int) -> float:
    """Probability that at least one of k trials passes: 1 - C(n - c, k) / C(n, k), unbiased.

    Args:
        n: Trials.
        c: Passes among them.
        k: Draws, 1 <= k <= n.

    Source: Chen et al. (2021), "Evaluating Large Language Models Trained on Code", eq. 1.
    """
    _check_counts(n, c, k)
    return 1 - math.comb(n - c, k) / math.comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Probability that all of k trials pass: C(c, k) / C(n, k), unbiased; arguments as in `pass_at_k`.

    Source: Yao et al. (2024), "tau-bench", pass^k.
    """
    _check_counts(n, c, k)
    return math.comb(c, k) / math.comb(n, k)


def case_flip_rate(passes: int, trials: int) -> float | None:
    """Share of the C(T, 2) pairs of a case's trials that disagree: 2k(T - k) / (T(T - 1)); None below two trials."""
    return 2 * passes * (trials - passes) / (trials * (trials - 1)) if trials >= 2 else None


def clustered_rate(values: Sequence[float], *, at_least: float, at_most: float, confidence: float = 0.95) -> Interval:
    """Interval for the mean of a quantity in [0, 1] over cases like these, clustered by case.

    Wilson's interval with the effective number of trials n_eff = p(1 - p) / SE², SE being that of the mean over
    cases, and the t quantile of C - 1 degrees of freedom in place of the normal one.

    Args:
        values: One value a case, in [0, 1]; at least one.
        at_least: Lower bound of n_eff.
        at_most: Upper bound of n_eff: the number of independent observations.
        confidence: Nominal coverage.

    Edges: one case counts as one observation; when all cases agree, n_eff is their number.

    Source: Korn & Graubard (1998), Survey Methodology 24:193-201, with Wilson's interval for Clopper-Pearson's.
    """
    cases = len(values)
    centre = mean(values)
    spread = sd(values)
    if spread is None:
        return wilson(centre, 1, confidence=confidence)
    if spread < ROUNDING:
        effective = float(cases)
    else:
        effective = max(at_least, min(at_most, centre * (1 - centre) * cases / spread**2))
    return wilson(centre * effective, effective, z=t_quantile(0.5 + confidence / 2, cases - 1))


def lane_rate(case_rates: Sequence[float], trials: int, *, confidence: float = 0.95) -> Rate:
    """Pass rate (or mean score) of a lane: the mean over its cases, with an interval for cases like these.

    Args:
        case_rates: One rate (or mean score) a measured case, in [0, 1].
        trials: Trials behind them, all cases together: n_eff never exceeds it.
        confidence: Nominal coverage.

    Returns:
        `n` is the number of trials; no cases give None. Source and edges: `clustered_rate`.
    """
    if not case_rates:
        return Rate(rate=None, ci=None, n=0, method=NOT_MEASURED)
    interval = clustered_rate(case_rates, at_least=0.0, at_most=trials, confidence=confidence)
    return Rate(rate=mean(case_rates), ci=list(interval), n=trials, method="wilson, clustered by case")


def flip_rate(counts: Sequence[tuple[int, int]], *, confidence: float = 0.95) -> Rate:
    """How often two trials of the same case disagree, within one run.

    Args:
        counts: (passes, trials) of each case; cases with fewer than two trials say nothing and are left out.
        confidence: Nominal coverage.

    Returns:
        The mean of `case_flip_rate` over cases; `n` is the number of cases. n_eff lies between 1 and half the number
        of trials, for a pair needs two. Source and edges: `clustered_rate`.
    """
    used = [(passes, trials) for passes, trials in counts if trials >= 2]
    flips = [flip for passes, trials in used if (flip := case_flip_rate(passes, trials)) is not None]
    return _flips(flips, sum(trials for _, trials in used) / 2, confidence)


def flip_rate_between(counts: Sequence[tuple[int, int, int, int]], *, confidence: float = 0.95) -> Rate:
    """How often a trial of one run disagrees with a trial of the same case in another run.

    Args:
        counts: (passes, trials, passes of the other run, its trials) of each case; cases without trials in both runs
            are left out.
        confidence: Nominal coverage.

    Returns:
        The mean over cases of (k1(T2 - k2) + k2(T1 - k1)) / (T1 T2), the share of the T1 T2 cross pairs that disagree;
        `n` is the number of cases.
    """
    used = [row for row in counts if row[1] and row[3]]
    flips = [(k1 * (t2 - k2) + k2 * (t1 - k1)) / (t1 * t2) for k1, t1, k2, t2 in used]
    return _flips(flips, float(sum(min(t1, t2) for _, t1, _, t2 in used)), confidence)


def _flips(flips: Sequence[float], pairs: float, confidence: float) -> Rate:
    if not flips:
        return Rate(rate=None, ci=None, n=0, method=NOT_MEASURED)
    interval = clustered_rate(flips, at_least=1.0, at_most=max(1.0, pairs), confidence=confidence)
    return Rate(rate=mean(flips), ci=list(interval), n=len(flips), method="wilson, clustered by case")


def routing(triggered: Sequence[tuple[bool, bool]]) -> Mapping[str, Rate]:
    """Recall, false trigger rate and precision of skill selection, each with Wilson's interval.

    Args:
        triggered: For each trial in which the skill could be discovered: (should it load, did it load).
    """
    should = [loaded for wanted, loaded in triggered if wanted]
    should_not = [loaded for wanted, loaded in triggered if not wanted]
    loads = sum(should) + sum(should_not)
    return {
        "recall": rate(sum(should), len(should)),
        "false_trigger_rate": rate(sum(should_not), len(should_not)),
        "precision": rate(sum(should), loads),
    }
