"""What a lane asks of the agent, and what scores it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_skilleval.casespec import Lane, RubricCheck, SkillCheck
from pytest_skilleval.model import Case, Condition
from pytest_skilleval.scoring import bundle
from pytest_skilleval.scoring.bundle import Redact
from pytest_skilleval.scoring.facts import CommandResult, Facts, RunCommand
from pytest_skilleval.scoring.selection import can_discover

from . import dogfood, execution, prompt
from .marks import Marks, Weights

__all__ = [
    "CommandResult",
    "Facts",
    "Marks",
    "RunCommand",
    "applies_to",
    "ask_text",
    "collect_bundle",
    "component_ids",
    "grade",
]

_WEIGHTS: dict[Lane, dict[str, float]] = {
    Lane.PROMPT: prompt.WEIGHTS,
    Lane.EXECUTION: execution.WEIGHTS,
    Lane.DOGFOOD: dogfood.WEIGHTS,
}


def component_ids(lane: Lane) -> tuple[str, ...]:
    """Return the names of a lane's components: the keys that `scoring.weights` of a case may hold."""
    return tuple(_WEIGHTS[lane])


def ask_text(case: Case, condition: Condition) -> str:
    """Return what the agent is told; the same words in every condition."""
    match case.lane:
        case Lane.PROMPT:
            return prompt.ask_text(case, condition)
        case Lane.EXECUTION:
            return execution.ask_text(case, condition)
        case Lane.DOGFOOD:
            return dogfood.ask_text(case, condition)


def grade(facts: Facts, *, weights: Mapping[str, float] | None = None, pass_at: float | None = None) -> Marks:
    """Score a finished trial by the rules of its lane.

    Args:
        facts: What is known of it.
        weights: The project's own weights of components; the case's come first.
        pass_at: The project's own least score; the case's comes first.
    """
    case = facts.case
    least = case.spec.scoring.pass_at if case.spec.scoring.pass_at is not None else pass_at
    table = Weights(case.lane, _WEIGHTS[case.lane], dict(weights or {}))
    match case.lane:
        case Lane.PROMPT:
            return prompt.grade(facts, table, least)
        case Lane.EXECUTION:
            return execution.grade(facts, table, least)
        case Lane.DOGFOOD:
            return dogfood.grade(facts, table, least)


def collect_bundle(source: Path, target: Path, *, title: str = "", redact: Redact | None = None) -> Path:
    """Copy the bundle that an agent left at `source` into the run, with its manifest and review page; return `target`.

    Raises:
        TrialFault: Of class `record`: `target` is taken by something else, or cannot be written.
    """
    bundle.collect(source, target, title=title, redact=redact)
    return target


def applies_to(component: str, case: Case, condition: Condition) -> bool:
    """Return whether a component of a case can apply under a condition, whatever the agent does.

    A comparison of conditions uses only components that apply in all of them.
    """
    spec = case.spec
    if component == "skill-selection":
        return can_discover(condition)
    if component == "checks":
        return any(
            not isinstance(check, RubricCheck) and (can_discover(condition) or not isinstance(check, SkillCheck))
            for check in spec.checks
        )
    asked = {
        "workflow": spec.workflow,
        "anti-patterns": spec.anti_patterns,
        "artifacts": spec.artifacts,
        "expected-patterns": spec.expect,
        "forbidden-patterns": spec.forbid,
        "bundle-completeness": spec.bundle,
        "evidence-quality": spec.bundle,
        "report-completeness": spec.report,
        "reproducibility": spec.report,
        "taxonomy": spec.report and spec.report.taxonomy,
    }
    return bool(asked.get(component, True))
