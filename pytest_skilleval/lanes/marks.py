"""What a lane says of a trial: Marks, and the Parts that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pytest_skilleval.casespec import Lane
from pytest_skilleval.errors import TrialFault
from pytest_skilleval.model import Case
from pytest_skilleval.records import CheckResult, Component, Score, TrialError

__all__ = ["Marks", "Part", "Weights", "attempt", "combine"]

REASON_CHARS = 500
_DECIDING = frozenset(
    {"expected-patterns", "skill-selection", "workflow", "artifacts", "bundle-completeness", "report-completeness"}
)
"""Components that an agent must earn. What doing nothing satisfies (no anti-pattern, nothing forbidden) decides no
trial by itself."""


@dataclass(frozen=True)
class Marks:
    """The verdict on one trial."""

    passed: bool | None
    """None when the trial is an error, because a check or pattern broke."""
    score: Score | None
    """None when no component applies, or the trial is an error."""
    checks: tuple[CheckResult, ...]
    reason: str
    """One line for people."""
    selected_skill: str | None = None
    faults: tuple[TrialError, ...] = ()
    """Not empty = the trial is an error."""
    unjudged: bool = False
    """Whether all that could decide the trial is stated in prose, and no judge was asked."""


@dataclass(frozen=True)
class Part:
    """One component of a score, and what it says about passing."""

    component: Component
    problems: tuple[str, ...] = ()
    """Why the trial cannot pass, each one line."""
    faults: tuple[TrialError, ...] = ()
    checks: tuple[CheckResult, ...] = ()


@dataclass(frozen=True)
class Weights:
    """The weight of each component: the case's own, else the project's, else the lane's."""

    lane: Lane
    default: dict[str, float]
    project: dict[str, float] = field(default_factory=dict)

    def of(self, component: str, case: Case) -> float:
        """Return a component's weight; penalties are given, and returned, as positive numbers."""
        own = case.spec.scoring.weights
        if component in own:
            return own[component]
        return self.project.get(component, self.default[component])


def attempt(component: str, weight: float, build: Callable[[], Part]) -> Part:
    """Build a part; a pattern that runs out of time makes it a fault instead."""
    try:
        return build()
    except TrialFault as fault:
        error = TrialError(error_class=fault.error_class, message=f"{component}: {fault.message}")
        return Part(Component(id=component, value=None, weight=weight, reason=fault.message), faults=(error,))


def combine(
    parts: Iterable[Part], *, pass_at: float | None, selected_skill: str | None, problems: tuple[str, ...] = ()
) -> Marks:
    """Put parts together: the score, whether the trial passes, and the line that says why.

    Args:
        parts: The lane's components, in the order of its table.
        pass_at: The least score with which a trial passes, if there is one.
        selected_skill: What the agent chose.
        problems: What keeps the trial from passing besides the parts.
    """
    parts = tuple(parts)
    checks = tuple(check for part in parts for check in part.checks)
    faults = tuple(fault for part in parts for fault in part.faults)
    if faults:
        return Marks(None, None, checks, _bounded(fault.message for fault in faults), selected_skill, faults)
    open_ = [check.id for check in checks if check.kind == "rubric" and check.passed is None]
    if any(check.kind == "rubric" and check.required and check.passed is None for check in checks) and not (
        any(check.required and check.passed is not None for check in checks)
        or any(part.component.id in _DECIDING and part.component.value is not None for part in parts)
    ):
        reason = f"unjudged: no judge was asked about {', '.join(open_)}, and nothing else decides"
        return Marks(None, None, checks, _bounded([reason]), selected_skill, unjudged=True)
    score = Score.of(tuple(part.component for part in parts))
    against = [problem for part in parts for problem in part.problems] + list(problems)
    if pass_at is not None and score is not None and score.total < pass_at - 1e-9:
        against.append(f"score {score.total:.2f} is below {pass_at:g}")
    reason = _bounded(against) if against else "all that is required holds"
    if open_ and not against:
        reason = _bounded([reason, f"unjudged: {', '.join(open_)}"])
    return Marks(not against, score, checks, reason, selected_skill)


def _bounded(lines: Iterable[str]) -> str:
    text = "; ".join(lines)
    return text if len(text) <= REASON_CHARS else text[: REASON_CHARS - 3] + "..."
