"""One group's trials in a few numbers: pass rate, mean score, pass@k, pass^k and flip rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from .intervals import mean, score_interval, sd, unit_values
from .rates import NOT_MEASURED, Rate, case_flip_rate, lane_rate, pass_at_k, pass_hat_k, rate

__all__ = ["GroupSummary", "ScoreSummary", "summarise_group", "summarise_lane_scores", "summarise_scores"]

DRAWS = (1, 2, 3, 5, 10)
"""The k of pass@k and pass^k that are given, as far as there are trials."""


class ScoreSummary(TypedDict):
    """Scores of one group; None where nothing was measured (`sd` needs two scores)."""

    mean: float | None
    sd: float | None
    ci: list[float] | None
    min: float | None
    max: float | None
    n: int
    method: str


class GroupSummary(TypedDict):
    """What is said about the trials of one case under one condition."""

    pass_rate: Rate
    score: ScoreSummary
    pass_at_k: dict[str, float]
    pass_hat_k: dict[str, float]
    flip_rate: float | None


def summarise_scores(scores: Sequence[float], *, confidence: float = 0.95) -> ScoreSummary:
    """Mean, spread and interval (`score_interval`) of scores in [0, 1]; no scores give None."""
    values = unit_values(scores)
    if not values:
        return ScoreSummary(mean=None, sd=None, ci=None, min=None, max=None, n=0, method=NOT_MEASURED)
    interval, method = score_interval(values, confidence=confidence)
    return ScoreSummary(
        mean=mean(values),
        sd=sd(values),
        ci=list(interval),
        min=min(values),
        max=max(values),
        n=len(values),
        method=method,
    )


def summarise_lane_scores(case_means: Sequence[float], trials: int, *, confidence: float = 0.95) -> ScoreSummary:
    """Mean score over the cases of a lane, with the interval of `lane_rate`; `sd` is that of the case means.

    Args:
        case_means: Mean score of each measured case, in [0, 1].
        trials: Trials behind them.
        confidence: Nominal coverage.
    """
    values = unit_values(case_means)
    clustered = lane_rate(values, trials, confidence=confidence)
    return ScoreSummary(
        mean=clustered["rate"],
        sd=sd(values),
        ci=clustered["ci"],
        min=min(values, default=None),
        max=max(values, default=None),
        n=clustered["n"],
        method=clustered["method"],
    )


def summarise_group(
    scores: Sequence[float], passes: Sequence[bool], *, draws: Sequence[int] = DRAWS, confidence: float = 0.95
) -> GroupSummary:
    """Summary of the measured trials of one group; errors and missing trials are left out before.

    Args:
        scores: One score a trial, in [0, 1].
        passes: One bit a trial; as many as there are scores.
        draws: The k of pass@k and pass^k; those above the number of trials are left out.
        confidence: Nominal coverage of the intervals.

    Raises:
        ValueError: The numbers of scores and passes differ, or a score is outside [0, 1].
    """
    if len(scores) != len(passes):
        raise ValueError(f"{len(scores)} scores and {len(passes)} passes; each trial needs both")
    n, passed = len(passes), sum(bool(bit) for bit in passes)
    kept = [k for k in draws if k <= n]
    return GroupSummary(
        pass_rate=rate(passed, n, confidence=confidence),
        score=summarise_scores(scores, confidence=confidence),
        pass_at_k={str(k): pass_at_k(n, passed, k) for k in kept},
        pass_hat_k={str(k): pass_hat_k(n, passed, k) for k in kept},
        flip_rate=case_flip_rate(passed, n),
    )
