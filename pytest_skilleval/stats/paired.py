"""A comparison by the rule of the first implementation, in the shape of the others: to see what it would have said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from .differences import win_loss_tie
from .findings import Change, Comparison, Group, GroupFinding, OverallChange, decide
from .groups import missing_group
from .intervals import Interval, mean
from .levels import Levels
from .origin import RESAMPLES, SEED, paired_bootstrap
from .overall import nothing_to_compare
from .sides import Draws

__all__ = ["compare_paired"]

METHOD = "paired-bootstrap"
LEFT_OUT = "trials are paired by index: {} without a partner left out"


def _change(base: Sequence[float], cand: Sequence[float]) -> Change:
    found = paired_bootstrap(base, cand)
    return Change(
        base=mean(base[: found.pairs]),
        cand=mean(cand[: found.pairs]),
        delta=found.delta,
        ci=list(found.interval),
        method=METHOD,
    )


def _entry(change: Change, threshold: float) -> tuple[Interval, float, float]:
    return Interval(*(change["ci"] or ())), change["delta"] or 0.0, threshold


def _judge(group: Group, levels: Levels) -> GroupFinding:
    score = _change(group.base_scores, group.cand_scores)
    tally = win_loss_tie(group.base_scores, group.cand_scores)
    left_out = abs(len(group.base_scores) - len(group.cand_scores))
    return {
        **missing_group(group),
        "verdict": decide([_entry(score, levels.score_threshold)]),
        "reason": LEFT_OUT.format(left_out) if left_out else "",
        "delta": score["delta"],
        "ci": score["ci"],
        "score": score,
        "pass_rate": _change(group.base_passes, group.cand_passes),
        "wins": tally.wins,
        "losses": tally.losses,
        "ties": tally.ties,
    }


def compare_paired(groups: Sequence[Group], levels: Levels) -> Comparison:
    """Judge each group by its scores, and all pairs of trials of all groups pooled by scores and passes.

    No error is controlled: intervals may be points, each group is judged as if it were the only one, and pooling takes
    trials of one case for independent. No p, q or control groups. Source: see `origin.paired_bootstrap`.

    Args:
        groups: All groups; those that a run did not measure stay inconclusive.
        levels: Its practical thresholds are used.
    """
    measured = [group for group in groups if group.measured]
    overall = nothing_to_compare(0.05, Draws(0, RESAMPLES, SEED))
    if measured:
        pooled = {metric: [_pooled(group, metric) for group in measured] for metric in ("score", "pass_rate")}
        changes = {
            metric: OverallChange(
                **_change([b for base, _ in pairs for b in base], [c for _, cand in pairs for c in cand]),
                p=None,
                cases_like_these=None,
                detectable=None,
                needed=None,
            )
            for metric, pairs in pooled.items()
        }
        differences = [mean(cand) - mean(base) for base, cand in pooled["score"]]
        left_out = sum(abs(len(group.base_scores) - len(group.cand_scores)) for group in measured)
        entries = [
            _entry(changes["score"], levels.score_threshold),
            _entry(changes["pass_rate"], levels.pass_threshold),
        ]
        overall = {
            **overall,
            "verdict": decide(entries),
            "exact": False,
            "cases": len({group.case for group in measured}),
            "groups": len(measured),
            "score": changes["score"],
            "pass_rate": changes["pass_rate"],
            "wins": sum(d > 0 for d in differences),
            "losses": sum(d < 0 for d in differences),
            "ties": sum(d == 0 for d in differences),
            "reasons": [LEFT_OUT.format(left_out)] if left_out else [],
        }
    return Comparison(
        method=METHOD,
        levels=asdict(levels),
        per_case=[_judge(group, levels) if group.measured else missing_group(group) for group in groups],
        overall=overall,
        families={"deciding": None, "controls": None},
    )


def _pooled(group: Group, metric: str) -> tuple[list[float], list[float]]:
    base, cand = (group.base_scores, group.cand_scores) if metric == "score" else (group.base_passes, group.cand_passes)
    pairs = min(len(base), len(cand))
    return base[:pairs], cand[:pairs]
