"""The overall verdict: what all deciding groups say together, and whether the controls moved too."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from .bootstrap import cluster_bootstrap
from .differences import difference_of_differences, paired_difference
from .findings import ControlFinding, Family, Group, OverallChange, OverallFinding, decide
from .intervals import ROUNDING, Interval
from .levels import Levels
from .planning import cases_needed, least_visible_overall, smallest_detectable, trials_needed
from .reasons import reasons
from .sides import METRICS, Draws, Metric, Side
from .stratified import StratifiedTest

__all__ = ["compare_overall", "nothing_to_compare"]

LIKE_THESE = 0.975
"""Confidence of each metric's interval for cases like these, two metrics sharing 5 %."""


def _overall_change(side: Side, metric: Metric, test: StratifiedTest, level: float, threshold: float) -> OverallChange:
    tested = test.score if metric == "score" else test.pass_rate
    cases, trials = len(side.cases), side.trials
    clustered = paired_difference(*side.means(metric), confidence=LIKE_THESE).interval
    error = side.error(metric, tested) or tested.spread
    flips = error**2 * cases * trials  # the flip rate of a design with this standard error
    likely = smallest_detectable(error, cases, alpha=level)
    visible = least_visible_overall(sum(len(group.cand_scores) for group in side.groups), level)
    plannable = flips > 0 and threshold > 0
    return OverallChange(
        **side.change(metric, test, level),
        p=tested.p,
        cases_like_these={"ci": list(clustered), "confidence": LIKE_THESE, "method": "t over cases"},
        detectable=None if likely is None or visible is None else max(likely, visible),
        needed={
            "change": threshold,
            "trials": trials_needed(threshold, flips, cases, alpha=level) if plannable else None,
            "cases": cases_needed(threshold, flips, trials, alpha=level) if plannable else None,
        },
    )


def _controls(controls: Side, deciding: Side, levels: Levels, draws: Draws) -> ControlFinding:
    test = controls.test(levels.drift, draws)
    both = [case for case in deciding.cases if case in controls.cases]
    difference: dict[str, object] | None = None
    if both:
        difference = {"cases": len(both)}
        difference.update({metric: _beyond_controls(controls, deciding, metric, both) for metric in METRICS})
    return ControlFinding(
        cases=len(controls.cases),
        groups=len(controls.groups),
        p=test.p,
        moved=test.p <= levels.drift,
        score=controls.change("score", test, levels.drift),
        pass_rate=controls.change("pass_rate", test, levels.drift),
        difference_of_differences=difference,
    )


def _beyond_controls(controls: Side, deciding: Side, metric: Metric, both: Sequence[Hashable]) -> dict[str, object]:
    def pick(side: Side) -> tuple[list[float], list[float]]:
        rows = dict(zip(side.cases, zip(*side.means(metric), strict=True), strict=True))
        return [rows[case][0] for case in both], [rows[case][1] for case in both]

    found = difference_of_differences(pick(controls), pick(deciding))
    return {"delta": found.delta, "ci": list(found.interval)}


def _bootstrap(side: Side, draws: Draws) -> dict[str, object]:
    rows = list(zip(*(side.differences(metric) for metric in METRICS), strict=True))
    intervals = cluster_bootstrap(rows, confidence=LIKE_THESE, resamples=draws.resamples, seed=draws.seed)
    shown: dict[str, object] = {
        metric: {"ci": None if interval is None else list(interval)}
        for metric, interval in zip(METRICS, intervals, strict=True)
    }
    return {
        "method": "expanded percentile, whole cases resampled",
        "confidence": LIKE_THESE,
        "resamples": draws.resamples,
        "seed": draws.seed,
        **shown,
    }


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
    side = Side(deciding)
    test = side.test(level, draws)
    thresholds = {"score": levels.score_threshold, "pass_rate": levels.pass_threshold}
    changes: dict[str, OverallChange] = {
        metric: _overall_change(side, metric, test, level, thresholds[metric]) for metric in METRICS
    }
    verdict = decide(
        [(Interval(*(c["ci"] or ())), c["delta"] or 0.0, thresholds[metric]) for metric, c in changes.items()]
    )
    control = _controls(Side(controls), side, levels, draws) if controls else None
    differences = side.differences("score")
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
        reasons=reasons(verdict, changes, family, control),
    )
