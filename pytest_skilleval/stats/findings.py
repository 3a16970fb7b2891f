"""What a comparison says, as plain mappings: the shapes of its answers, and the rule that gives a verdict."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal, NamedTuple, TypedDict

from .intervals import ROUNDING, Interval

__all__ = [
    "Change",
    "Comparison",
    "ControlFinding",
    "Family",
    "Group",
    "GroupFinding",
    "OverallChange",
    "OverallFinding",
    "Verdict",
    "decide",
    "plain",
    "reconcile",
]

Verdict = Literal["improved", "regressed", "inconclusive"]


class Group(NamedTuple):
    """The measured trials of one group in both runs; a run without any is missing."""

    case: Hashable
    """Groups of one case (its conditions) are one unit."""
    deciding: bool
    """Whether its agents could see what was changed; else it is a negative control."""
    base_scores: list[float]
    cand_scores: list[float]
    base_passes: list[float]
    cand_passes: list[float]

    @property
    def measured(self) -> bool:
        """Whether both runs have a trial."""
        return bool(self.base_scores and self.cand_scores)


class Change(TypedDict):
    """One metric of one group or set of groups in both runs; None where a run has no trial."""

    base: float | None
    cand: float | None
    delta: float | None
    """Candidate minus baseline."""
    ci: list[float] | None
    method: str


class GroupFinding(TypedDict):
    """What is said about one group."""

    verdict: Verdict
    reason: str
    """What the verdict lacks, for people; empty when there is nothing to say."""
    deciding: bool
    n: list[int]
    """Trials of baseline and candidate."""
    tested: Literal["score", "pass_rate"]
    """What p speaks about: the score, or the pass rate where all scores are equal."""
    delta: float | None
    """Of what was tested; `ci` excludes 0 exactly when the test decided."""
    ci: list[float] | None
    score: Change
    pass_rate: Change
    p: float | None
    expected: float | None
    """How many groups of this comparison would look as extreme by chance; None when p is above the signal level."""
    q: float | None
    signal: Literal["up", "down"] | None
    """Where a small p points to: never a verdict."""
    wins: int
    """Of all T1 · T2 pairs of scores, those where the candidate is better."""
    losses: int
    ties: int
    detectable: float | None
    """The smallest change of this group that would be found in 80 % of runs; None where not even a complete one is."""


class Family(TypedDict):
    """The groups that are judged together."""

    groups: int
    level: float
    """What q must not exceed."""
    p_needed: float | None
    """The largest p that a lone changed group may have to get a verdict; None when no group can get one."""
    spent: float
    """Probability of a verdict in this family when nothing changed, at most."""
    reversible: int
    """Groups that could reverse completely by chance."""
    least_trials: int
    """Trials below which a lone complete reversal gets no verdict."""
    signals_up: int
    signals_down: int
    signals_expected: float
    """Signals of either direction that chance alone would show."""


class OverallChange(Change):
    """One metric over all deciding groups."""

    p: float | None
    """Adjusted for the other metric."""
    cases_like_these: dict[str, Any] | None
    """The clustered t interval: {ci, confidence, method}."""
    detectable: float | None
    """The smallest overall change that would be found in 80 % of runs."""
    needed: dict[str, Any] | None
    """What would find the practical threshold: {change, trials, cases}; None where that alone cannot."""


class ControlFinding(TypedDict):
    """The negative controls: groups whose agents saw the same in both runs."""

    cases: int
    groups: int
    p: float
    moved: bool
    score: Change
    pass_rate: Change
    difference_of_differences: dict[str, Any] | None
    """Deciding minus control groups, case by case: {score, pass_rate, cases}."""


class OverallFinding(TypedDict):
    """The answer to "did my change help?"."""

    verdict: Verdict
    p: float | None
    level: float
    """What p must not exceed."""
    exact: bool
    """Whether p was computed from all relabellings, not from random ones."""
    relabellings: int
    seed: int
    cases: int
    groups: int
    score: OverallChange
    pass_rate: OverallChange
    wins: int
    """Cases whose mean score is higher."""
    losses: int
    ties: int
    bootstrap: dict[str, Any] | None
    drift: bool
    controls: ControlFinding | None
    reasons: list[str]


class Comparison(TypedDict):
    """Everything that a comparison of two runs says."""

    method: str
    levels: dict[str, float]
    per_case: list[GroupFinding]
    """One a group, in the order given."""
    overall: OverallFinding
    families: dict[str, Family | None]
    """`deciding` and `controls`."""


def reconcile(interval: Interval, delta: float, *, decided: bool) -> Interval:
    """The interval, excluding 0 exactly when the test decided: extended to 0, or cut just beside it.

    The test is exact and the interval is not; where they differ, the test holds.
    """
    if not decided:
        return Interval(min(interval.lower, 0.0), max(interval.upper, 0.0))
    if delta > 0:
        return Interval(max(interval.lower, ROUNDING), interval.upper)
    return Interval(interval.lower, min(interval.upper, -ROUNDING))


def decide(changes: list[tuple[Interval, float, float]]) -> Verdict:
    """The verdict on one or more metrics, each given as (reconciled interval, delta, practical threshold).

    regressed: some upper bound is below 0. Else improved: some lower bound is above 0 with an effect of at least the
    threshold. Else inconclusive.
    """
    if any(interval.upper < 0 for interval, _, _ in changes):
        return "regressed"
    if any(interval.lower > 0 and delta >= threshold - ROUNDING for interval, delta, threshold in changes):
        return "improved"
    return "inconclusive"


def plain(value: Any) -> Any:
    """The value with its floats cut to 12 significant digits, so that equal inputs give equal bytes everywhere."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return float(f"{value:.12g}") + 0.0 if isinstance(value, float) else value
