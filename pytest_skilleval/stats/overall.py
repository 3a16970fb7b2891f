"""The overall verdict: what all deciding groups say together, and whether the controls moved too."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Literal, NamedTuple

from scipy import special

from .bootstrap import RESAMPLES, cluster_bootstrap
from .differences import (
    difference_of_differences,
    moderated_variance,
    newcombe,
    paired_difference,
    pooled_variance,
)
from .findings import (
    Change,
    ControlFinding,
    Family,
    Group,
    OverallChange,
    OverallFinding,
    Verdict,
    decide,
    reconcile,
)
from .intervals import ROUNDING, Interval, clip, mean, normal_quantile
from .levels import Levels
from .permutation import RELABELLINGS, SEED
from .planning import cases_needed, least_visible_overall, smallest_detectable, trials_needed
from .stratified import MetricTest, StratifiedTest, Stratum, stratified_test

__all__ = ["Draws", "compare_overall", "nothing_to_compare"]

Metric = Literal["score", "pass_rate"]
METRICS: tuple[Metric, Metric] = ("score", "pass_rate")
LIKE_THESE = 0.975
"""Confidence of each metric's interval for cases like these, two metrics sharing 5 %."""
OPPOSITE = 0.05
"""How unlikely so many signals both ways must be by chance before that is said."""


class Draws(NamedTuple):
    """How much is drawn, and from which seeds."""

    relabellings: int = RELABELLINGS
    resamples: int = RESAMPLES
    seed: int = SEED


class _Cases(NamedTuple):
    """Mean of each case in both runs: over trials within its groups, then over its groups, all alike."""

    base: list[float]
    cand: list[float]

    @property
    def differences(self) -> list[float]:
        return [c - b for b, c in zip(self.base, self.cand, strict=True)]


class _Side(NamedTuple):
    """The measured groups of one role."""

    groups: Sequence[Group]
    cases: dict[Hashable, list[Group]]
    means: dict[Metric, _Cases]
    errors: dict[Metric, float]
    """Standard error of each metric's overall difference, for these cases; 0 when nothing varies within a run."""


def _trials(group: Group, metric: Metric) -> tuple[list[float], list[float]]:
    if metric == "score":
        return group.base_scores, group.cand_scores
    return group.base_passes, group.cand_passes


def _side(groups: Sequence[Group]) -> _Side:
    cases: dict[Hashable, list[Group]] = {}
    for group in groups:
        cases.setdefault(group.case, []).append(group)
    means = {
        metric: _Cases(
            *(
                [mean([mean(_trials(group, metric)[run]) for group in members]) for members in cases.values()]
                for run in (0, 1)
            )
        )
        for metric in METRICS
    }
    return _Side(groups, cases, means, {metric: _error(cases, metric) for metric in METRICS})


def _error(cases: dict[Hashable, list[Group]], metric: Metric) -> float:
    """Root of the summed variances of the groups' mean differences, each within its runs and moderated by all."""
    weighted = [(1 / (len(cases) * len(members)), *_trials(g, metric)) for members in cases.values() for g in members]
    variances = [v for _, base, cand in weighted if (v := pooled_variance(base, cand)) is not None]
    prior = mean(variances) if variances else 0.0
    return math.sqrt(
        math.fsum(
            weight**2 * moderated_variance(base, cand, prior) * (1 / len(base) + 1 / len(cand))
            for weight, base, cand in weighted
        )
    )


def _test(side: _Side, level: float, draws: Draws) -> StratifiedTest:
    strata = [
        Stratum(
            1 / (len(side.cases) * len(members)),
            tuple(sorted(zip(group.base_scores, group.base_passes, strict=True))),
            tuple(sorted(zip(group.cand_scores, group.cand_passes, strict=True))),
        )
        for members in side.cases.values()
        for group in members
    ]
    return stratified_test(strata, level=level, draws=draws.relabellings, seed=draws.seed)


def _change(side: _Side, metric: Metric, tested: MetricTest, critical: float, level: float) -> Change:
    """The interval for these cases, d ± critical · SE, reconciled with the test.

    With single trials nothing can vary within a run: then the relabellings' own spread is the error. Where nothing
    varies at all, Newcombe's interval on the two means with n = C.
    """
    means, cases = side.means[metric], len(side.cases)
    delta = tested.delta if abs(tested.delta) >= ROUNDING else 0.0
    error = _error_or_spread(side, metric, tested)
    if error > ROUNDING:
        half = max(critical, normal_quantile(1 - level / 2)) * error
        interval, method = clip(Interval(delta - half, delta + half), -1.0, 1.0), "relabelling"
    else:
        found = newcombe(math.fsum(means.base), cases, math.fsum(means.cand), cases, confidence=1 - level)
        interval, method = found.interval, "newcombe"
    interval = reconcile(interval, delta, decided=tested.p <= level and delta != 0)
    return Change(base=mean(means.base), cand=mean(means.cand), delta=delta, ci=list(interval), method=method)


def _error_or_spread(side: _Side, metric: Metric, tested: MetricTest) -> float:
    single = all(len(group.base_scores) == len(group.cand_scores) == 1 for group in side.groups)
    return tested.spread if single else side.errors[metric]


def _overall_change(side: _Side, metric: Metric, test: StratifiedTest, level: float, threshold: float) -> OverallChange:
    tested = test.score if metric == "score" else test.pass_rate
    means, cases = side.means[metric], len(side.cases)
    clustered = paired_difference(means.base, means.cand, confidence=LIKE_THESE).interval
    trials = len(side.groups) / math.fsum((1 / len(g.base_scores) + 1 / len(g.cand_scores)) / 2 for g in side.groups)
    error = _error_or_spread(side, metric, tested) or tested.spread
    flips = error**2 * cases * trials  # the flip rate of a design with this standard error
    likely = smallest_detectable(error, cases, alpha=level)
    visible = least_visible_overall(sum(len(g.cand_scores) for g in side.groups), level)
    return OverallChange(
        **_change(side, metric, tested, test.critical, level),
        p=tested.p,
        cases_like_these={"ci": list(clustered), "confidence": LIKE_THESE, "method": "t over cases"},
        detectable=None if likely is None or visible is None else max(likely, visible),
        needed={
            "change": threshold,
            "trials": trials_needed(threshold, flips, cases, alpha=level) if flips and threshold else None,
            "cases": cases_needed(threshold, flips, trials, alpha=level) if flips and threshold else None,
        },
    )


def _controls(controls: _Side, deciding: _Side, levels: Levels, draws: Draws) -> ControlFinding:
    test = _test(controls, levels.drift, draws)
    both = [case for case in deciding.cases if case in controls.cases]
    difference: dict[str, object] | None = None
    if both:
        difference = {"cases": len(both)}
        difference.update({metric: _did(controls, deciding, metric, both) for metric in METRICS})
    return ControlFinding(
        cases=len(controls.cases),
        groups=len(controls.groups),
        p=test.p,
        moved=test.p <= levels.drift,
        score=_change(controls, "score", test.score, test.critical, levels.drift),
        pass_rate=_change(controls, "pass_rate", test.pass_rate, test.critical, levels.drift),
        difference_of_differences=difference,
    )


def _did(controls: _Side, deciding: _Side, metric: Metric, both: Sequence[Hashable]) -> dict[str, object]:
    def pick(side: _Side) -> tuple[list[float], list[float]]:
        rows = dict(zip(side.cases, zip(side.means[metric].base, side.means[metric].cand, strict=True), strict=True))
        return [rows[case][0] for case in both], [rows[case][1] for case in both]

    found = difference_of_differences(pick(controls), pick(deciding))
    return {"delta": found.delta, "ci": list(found.interval)}


def _bootstrap(side: _Side, draws: Draws) -> dict[str, object]:
    rows = list(zip(*(side.means[metric].differences for metric in METRICS), strict=True))
    intervals = cluster_bootstrap(rows, confidence=LIKE_THESE, resamples=draws.resamples, seed=draws.seed)
    return {
        "method": "expanded percentile, whole cases resampled",
        "confidence": LIKE_THESE,
        "resamples": draws.resamples,
        "seed": draws.seed,
        **{
            metric: {"ci": None if interval is None else list(interval)}
            for metric, interval in zip(METRICS, intervals, strict=True)
        },
    }


def _poisson_tail(count: int, expected: float) -> float:
    """P(X >= count), count > 0, for a Poisson variable."""
    return float(special.gammainc(count, expected))


def _reasons(
    verdict: Verdict, changes: dict[Metric, OverallChange], family: Family, controls: ControlFinding | None
) -> list[str]:
    reasons = []
    if controls is not None and controls["moved"]:
        reasons.append(
            "drift: the control groups, whose agents saw no change, moved too "
            f"(score {controls['score']['delta']:+.3f}, pass rate {controls['pass_rate']['delta']:+.3f})"
        )
    up, down, each = family["signals_up"], family["signals_down"], family["signals_expected"] / 2
    if min(up, down) and _poisson_tail(min(up, down), each) <= OPPOSITE:
        reasons.append(f"groups moved in opposite directions: {up} up, {down} down ({each:.1f} each by chance)")
    signs = {metric: _sign(change["ci"]) for metric, change in changes.items()}
    if set(signs.values()) == {-1, 1}:
        reasons.append("score and pass rate moved in opposite directions")
    for metric, change in changes.items():
        name, wide = metric.replace("_", " "), _sign((change["cases_like_these"] or {}).get("ci"))
        if signs[metric] and not wide:
            reasons.append(
                f"intervals and test disagree on the {name}: shown for these cases, not for cases like these"
            )
        elif wide and not signs[metric]:
            reasons.append(f"intervals and test disagree on the {name}: the test, which decides, is not sure")
        if verdict == "inconclusive" and signs[metric] > 0:
            reasons.append(f"the gain of {name} ({change['delta']:.3g}) is below the practical threshold")
    return reasons


def _sign(ci: Sequence[float] | None) -> int:
    """On which side of 0 an interval lies; 0 when it holds 0 or is not there."""
    return 0 if ci is None else (ci[0] > 0) - (ci[1] < 0)


def nothing_to_compare(level: float, draws: Draws) -> OverallFinding:
    """The overall finding when no deciding group was measured in both runs."""
    nothing = OverallChange(
        base=None,
        cand=None,
        delta=None,
        ci=None,
        method="none",
        p=None,
        cases_like_these=None,
        detectable=None,
        needed=None,
    )
    return OverallFinding(
        verdict="inconclusive",
        p=None,
        level=level,
        exact=True,
        relabellings=draws.relabellings,
        seed=draws.seed,
        cases=0,
        groups=0,
        score=nothing,
        pass_rate=nothing,
        wins=0,
        losses=0,
        ties=0,
        bootstrap=None,
        drift=False,
        controls=None,
        reasons=["no group that could show the change was measured in both runs"],
    )


def compare_overall(
    deciding: Sequence[Group], controls: Sequence[Group], family: Family, *, level: float, levels: Levels, draws: Draws
) -> OverallFinding:
    """The overall verdict of the deciding groups, beside it what qualifies it.

    Args:
        deciding: Groups that both runs measured and whose agents could see the change; at least one.
        controls: The other groups that both runs measured.
        family: Of the deciding groups.
        level: Of the overall test.
        levels: The other levels and the practical thresholds.
        draws: How much is drawn.
    """
    side = _side(deciding)
    test = _test(side, level, draws)
    thresholds = {"score": levels.score_threshold, "pass_rate": levels.pass_threshold}
    changes = {metric: _overall_change(side, metric, test, level, thresholds[metric]) for metric in METRICS}
    verdict = decide(
        [(Interval(*(c["ci"] or ())), c["delta"] or 0.0, thresholds[metric]) for metric, c in changes.items()]
    )
    control = _controls(_side(controls), side, levels, draws) if controls else None
    differences = side.means["score"].differences
    wins, losses = sum(d >= ROUNDING for d in differences), sum(d <= -ROUNDING for d in differences)
    return OverallFinding(
        verdict=verdict,
        p=test.p,
        level=level,
        exact=test.exact,
        relabellings=draws.relabellings,
        seed=draws.seed,
        cases=len(side.cases),
        groups=len(deciding),
        score=changes["score"],
        pass_rate=changes["pass_rate"],
        wins=wins,
        losses=losses,
        ties=len(differences) - wins - losses,
        bootstrap=_bootstrap(side, draws),
        drift=control is not None and control["moved"],
        controls=control,
        reasons=_reasons(verdict, changes, family, control),
    )
