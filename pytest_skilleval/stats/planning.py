"""What a design can see: the smallest detectable change, and how many trials or cases would see more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict

from .intervals import normal_quantile, sd, t_quantile
from .levels import DEFAULT_LEVELS, Levels

__all__ = [
    "FLIP_RATE",
    "DesignLimits",
    "between_case_variance",
    "cases_needed",
    "design_limits",
    "detectable_change",
    "least_visible_change",
    "least_visible_overall",
    "min_trials_for_case_verdict",
    "smallest_detectable",
    "standard_error",
    "trials_needed",
]

FLIP_RATE = 0.16
"""How often two trials of one case disagree, where nothing was measured yet."""
REVERSIBLE_SHARE = 0.10
"""Share of groups that could reverse completely by chance at that flip rate, measured with five trials."""
POWER = 0.80
MOST_CASES = 100_000
MOST_TRIALS = 1_000


class DesignLimits(TypedDict):
    """What a planned comparison will be able to say."""

    cases: int
    groups: int
    trials: int
    flip_rate: float
    detectable_change: float | None
    """Smallest overall change that is found in 80 % of runs; None where even a complete one is not."""
    least_trials: int
    """Trials below which no group of so many can get a verdict of its own."""
    group_verdicts: bool
    """Whether `trials` reaches `least_trials`."""
    overall_verdict: bool
    """Whether any overall change can be found."""
    reasons: list[str]
    """What it cannot say, and what would help."""


def standard_error(flip: float, cases: int, trials: float, tau2: float = 0.0) -> float:
    """Standard error of the mean difference of two runs: √((flip / T + τ²) / C).

    Args:
        flip: Mean over cases of 2p(1 - p): how often two trials of one case disagree.
        cases: Number of cases.
        trials: Trials for each case in each run (the harmonic mean where they differ).
        tau2: Variance between cases of the true change; 0 when only these cases matter.
    """
    return math.sqrt((flip / trials + tau2) / cases)


def _quantiles(cases: int, alpha: float, power: float) -> float:
    if cases < 2:
        return normal_quantile(1 - alpha / 2) + normal_quantile(power)
    return t_quantile(1 - alpha / 2, cases - 1) + t_quantile(power, cases - 1)


def smallest_detectable(error: float, cases: int, *, alpha: float, power: float = POWER) -> float | None:
    """The change that a two-sided test at `alpha` finds with the given power: (t(1 - alpha/2) + t(power)) · SE.

    Args:
        error: Standard error of the difference.
        cases: Number of cases: C - 1 degrees of freedom; with one case the normal quantiles.
        alpha: Level of the test.
        power: Probability of finding it.

    Returns:
        None where it exceeds 1: no change is large enough.

    Source: the usual sum of quantiles (Bloom 1995, Evaluation Review 19:547-556), with t for the normal ones.
    """
    change = _quantiles(cases, alpha, power) * error
    return change if change <= 1 else None


def detectable_change(
    flip: float,
    cases: int,
    trials: float,
    *,
    tau2: float = 0.0,
    alpha: float = DEFAULT_LEVELS.planned,
    power: float = POWER,
) -> float | None:
    """`smallest_detectable` of a design; arguments as in `standard_error`."""
    return smallest_detectable(standard_error(flip, cases, trials, tau2), cases, alpha=alpha, power=power)


def trials_needed(
    change: float,
    flip: float,
    cases: int,
    *,
    tau2: float = 0.0,
    alpha: float = DEFAULT_LEVELS.planned,
    power: float = POWER,
) -> int | None:
    """Trials for each case that make a change detectable: ⌈flip / (C (δ/q)² - τ²)⌉, q being the sum of quantiles.

    Returns:
        None where no number of trials (up to 1,000) does: cases must be added.
    """
    room = cases * (change / _quantiles(cases, alpha, power)) ** 2 - tau2
    if room <= 0:
        return None
    trials = max(1, math.ceil(flip / room - 1e-9))
    return trials if trials <= MOST_TRIALS else None


def cases_needed(
    change: float,
    flip: float,
    trials: float,
    *,
    tau2: float = 0.0,
    alpha: float = DEFAULT_LEVELS.planned,
    power: float = POWER,
) -> int | None:
    """The fewest cases (at least 2) that make a change detectable with so many trials each; None beyond 100,000."""

    def found(cases: int) -> bool:
        smallest = detectable_change(flip, cases, trials, tau2=tau2, alpha=alpha, power=power)
        return smallest is not None and smallest <= change

    low, high = 2, MOST_CASES
    if not change > 0 or not found(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) else (middle + 1, high)
    return low


def between_case_variance(differences: Sequence[float], flip_base: float, flip_cand: float, trials: float) -> float:
    """τ²: how much the true change varies between cases, max(0, var(D) - flip_b / 2T - flip_c / 2T).

    Args:
        differences: Mean difference of each case; below two the answer is 0.
        flip_base: Flip rate within the baseline: p(1 - p) is half of it.
        flip_cand: Flip rate within the candidate.
        trials: Trials for each case in each run.
    """
    spread = sd(differences)
    return 0.0 if spread is None else max(0.0, spread**2 - (flip_base + flip_cand) / (2 * trials))


def min_trials_for_case_verdict(reversible: int, levels: Levels = DEFAULT_LEVELS, level: float | None = None) -> int:
    """The fewest trials with which one group that reverses completely gets a verdict.

    A complete reversal has p = 2 / C(2T, T), and E(p) counts each group that could reverse completely by chance.

    Args:
        reversible: Groups that could reverse completely by chance, the one in question among them; at least 1.
        levels: What p and E(p) must not exceed.
        level: What E(p) must not exceed instead.
    """
    family = levels.cases if level is None else level
    trials = 2
    while True:
        p = 2 / math.comb(2 * trials, trials)
        if p <= levels.case_p and max(1, reversible) * p <= family:
            return trials
        trials += 1


def least_visible_change(t1: int, t2: int, p: float) -> float | None:
    """The smallest drop from "all pass" that a group's relabelling test can give so small a p; None where none can.

    With f failures, all in the candidate, the p-value is (C(T2, f) + [T1 <= T2] C(T1, f)) / C(T1 + T2, f), the second
    term being the relabellings that are as extreme the other way.
    """
    for failures in range(1, t2 + 1):
        ways = math.comb(t2, failures) + (math.comb(t1, failures) if t1 <= t2 else 0)
        if ways / math.comb(t1 + t2, failures) <= p * (1 + 1e-9):
            return failures / t2
    return None


def least_visible_overall(trials: int, level: float) -> float | None:
    """The smallest drop from "all pass" that the overall test can call: k failures, all in one run, have p = 2^-k.

    Args:
        trials: Of one run, all groups together.
        level: Of the overall test.
    """
    failures = math.ceil(-math.log2(level))
    return failures / trials if failures <= trials else None


def design_limits(
    cases: int, groups: int, trials: int, *, flip: float | None = None, levels: Levels = DEFAULT_LEVELS
) -> DesignLimits:
    """What a comparison of two runs will be able to say, before the first agent starts.

    Args:
        cases: Cases that decide.
        groups: Their groups (case and condition).
        trials: Trials for each group and run.
        flip: Flip rate, of the baseline when there is one; else 0.16.
        levels: Of the verdicts.
    """
    rate = FLIP_RATE if flip is None else flip
    least = min_trials_for_case_verdict(max(1, round(REVERSIBLE_SHARE * groups)), levels)
    # Each case's conditions are averaged: so many more trials stand behind its mean.
    change = detectable_change(rate, cases, trials * groups / cases, alpha=levels.planned) if cases else None
    # Every group relabelled to one side and the other is the most that chance can be beaten by.
    overall = groups > 0 and groups * math.log(math.comb(2 * trials, trials)) >= -math.log(levels.planned)
    reasons = []
    if trials < least:
        reasons.append(f"{trials} trials cannot give a group a verdict of its own; {least} would")
    if not overall:
        reasons.append(f"{groups} groups of {trials} trials cannot give an overall verdict; add cases or trials")
    elif change is None:
        reasons.append(f"{cases} cases of {trials} trials find no change reliably; add cases or trials")
    return DesignLimits(
        cases=cases,
        groups=groups,
        trials=trials,
        flip_rate=rate,
        detectable_change=change,
        least_trials=least,
        group_verdicts=trials >= least,
        overall_verdict=overall,
        reasons=reasons,
    )
