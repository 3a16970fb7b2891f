"""Two versions of a skill in one run: the baseline side split off, and compared with the candidate's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_skilleval import comparison, summaries
from pytest_skilleval.model import BASE

if TYPE_CHECKING:
    from pytest_skilleval.options import Settings
    from pytest_skilleval.records import Plan
    from pytest_skilleval.results import GroupSummary, Report

__all__ = ["base_side", "compare"]

GroupKey = tuple[str, str, str]


def _twin(key: GroupKey) -> GroupKey:
    """Return the candidate's group that a group of the baseline side stands beside."""
    return (key[0], key[1], key[2].removesuffix(BASE))


def compare(
    plan: Plan, candidate: summaries.Trials, baseline: summaries.Trials, settings: Settings, status: str
) -> dict[str, Any]:
    """Compare both sides of a run, by the rule that compares two runs.

    Groups whose agents saw the same skills on both sides are its controls: they tell noise and drift from change.

    Args:
        plan: What was to be run; it names the versions.
        candidate: The groups of the current skills.
        baseline: The groups of the baseline side, under their own conditions.
        settings: Seed, method and thresholds.
        status: The run's; an invalid run gives no verdict.
    """
    sides = {_twin(key): group for key, group in baseline.items()}
    shared = [key for key in candidate if key in sides]
    against = plan.judging.against
    blocked = [f"this run is {status}"] if status == "invalid" else []
    blocked += [] if shared else ["no group ran on both sides"]
    reference = against.reference if against is not None else "the baseline"
    reasons = ["the run is incomplete: only finished trials are compared"] if status == "interrupted" else []
    frame = {
        "baseline": {
            "id": f"{reference} (in this run)",
            "run": plan.run,
            "digest": "",
            "trials": plan.trials_each,
            "reference": reference,
        },
        "candidate": {"run": plan.run},
        "method": plan.method,
        "comparable": not blocked,
        "reasons": reasons + blocked,
        "added": [],
        "removed": [],
        "changed": [],
        "skills": [
            {
                "skill": pair.name,
                "condition": "all",
                "baseline": pair.baseline or pair.candidate,
                "candidate": pair.candidate,
            }
            for pair in (against.skills if against is not None else ())
        ],
    }
    return comparison.weigh(
        frame,
        shared,
        {key: list(zip(sides[key].scores, sides[key].passes, strict=True)) for key in shared},
        candidate,
        [sides[key].planned[0].seen != candidate[key].planned[0].seen for key in shared],
        method=plan.method,
        seed=settings.seed,
        thresholds=settings.thresholds,
    )


def base_side(report: Report) -> Report | None:
    """Return the baseline side of a report as a report, for showing each trial beside its twin; None without one."""
    if not report.baseline_groups:
        return None
    return report.model_copy(
        update={
            "groups": tuple(_as_twin(row) for row in report.baseline_groups),
            "trials": tuple(
                line.model_copy(update={"condition": line.condition.removesuffix(BASE)})
                for line in report.trials
                if line.condition.endswith(BASE)
            ),
        }
    )


def _as_twin(row: GroupSummary) -> GroupSummary:
    return row.model_copy(update={"condition": row.condition.removesuffix(BASE)})
