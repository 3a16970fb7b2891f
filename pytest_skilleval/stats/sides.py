"""All groups of one role together, deciding or controls: their case means, their test, and what changed in them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

from .bootstrap import RESAMPLES
from .differences import moderated_variance, newcombe, pooled_variance
from .findings import Change, Group, reconcile
from .intervals import ROUNDING, Interval, clip, mean, normal_quantile
from .permutation import RELABELLINGS, SEED
from .stratified import MetricTest, StratifiedTest, Stratum, stratified_test

__all__ = ["METRICS", "Draws", "Metric", "Side"]

Metric = Literal["score", "pass_rate"]
METRICS: tuple[Metric, Metric] = ("score", "pass_rate")


class Draws(NamedTuple):
    """How much is drawn, and from which seed."""

    relabellings: int = RELABELLINGS
    resamples: int = RESAMPLES
    seed: int = SEED


def _trials(group: Group, metric: Metric) -> tuple[list[float], list[float]]:
    if metric == "score":
        return group.base_scores, group.cand_scores
    return group.base_passes, group.cand_passes


class Side:
    """The measured groups of one role.

    Each case weighs alike, and within it each of its groups.

    Args:
        groups: Groups with trials in both runs; at least one.
    """

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = groups
        self.cases: dict[Hashable, list[Group]] = {}
        """Groups by case."""
        for group in groups:
            self.cases.setdefault(group.case, []).append(group)

    @cached_property
    def _weighted(self) -> list[tuple[float, Group]]:
        return [(1 / (len(self.cases) * len(members)), group) for members in self.cases.values() for group in members]

    def means(self, metric: Metric) -> tuple[list[float], list[float]]:
        """Mean of each case, over trials within its groups, then over its groups: (baseline, candidate)."""
        base, cand = (
            [mean([mean(_trials(group, metric)[run]) for group in members]) for members in self.cases.values()]
            for run in (0, 1)
        )
        return base, cand

    def differences(self, metric: Metric) -> list[float]:
        """Candidate minus baseline mean of each case."""
        return [c - b for b, c in zip(*self.means(metric), strict=True)]

    @property
    def trials(self) -> float:
        """Harmonic mean of the numbers of trials of a group in a run."""
        return len(self.groups) / math.fsum((1 / len(g.base_scores) + 1 / len(g.cand_scores)) / 2 for g in self.groups)

    def test(self, level: float, draws: Draws) -> StratifiedTest:
        """The stratified relabelling test of these groups."""
        strata = [
            Stratum(
                weight,
                tuple(sorted(zip(group.base_scores, group.base_passes, strict=True))),
                tuple(sorted(zip(group.cand_scores, group.cand_passes, strict=True))),
            )
            for weight, group in self._weighted
        ]
        return stratified_test(strata, level=level, draws=draws.relabellings, seed=draws.seed)

    def error(self, metric: Metric, tested: MetricTest) -> float:
        """Standard error of the overall difference, for these cases; 0 when nothing varies within a run.

        Root of the weighted variances of the groups' mean differences, each within its runs and moderated by all. With
        single trials nothing can vary within a run: then the spread of the relabellings.
        """
        if all(len(group.base_scores) == len(group.cand_scores) == 1 for group in self.groups):
            return tested.spread
        runs = [(weight, *_trials(group, metric)) for weight, group in self._weighted]
        variances = [v for _, base, cand in runs if (v := pooled_variance(base, cand)) is not None]
        prior = mean(variances)
        return math.sqrt(
            math.fsum(
                weight**2 * moderated_variance(base, cand, prior) * (1 / len(base) + 1 / len(cand))
                for weight, base, cand in runs
            )
        )

    def change(self, metric: Metric, test: StratifiedTest, level: float) -> Change:
        """What changed, with the interval for these cases: d ± critical · SE, reconciled with the test.

        Where nothing varies within a run, Newcombe's interval on the two means with n = C.
        """
        tested = test.score if metric == "score" else test.pass_rate
        base, cand = self.means(metric)
        delta = tested.delta if abs(tested.delta) >= ROUNDING else 0.0
        error = self.error(metric, tested)
        if error > ROUNDING:
            half = max(test.critical, normal_quantile(1 - level / 2)) * error
            interval, method = clip(Interval(delta - half, delta + half), -1.0, 1.0), "relabelling"
        else:
            cases = len(self.cases)
            found = newcombe(math.fsum(base), cases, math.fsum(cand), cases, confidence=1 - level)
            interval, method = found.interval, "newcombe"
        interval = reconcile(interval, delta, decided=tested.p <= level and delta != 0)
        return Change(base=mean(base), cand=mean(cand), delta=delta, ci=list(interval), method=method)
