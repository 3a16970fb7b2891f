"""What a trial came to: everything it gathered, turned into its one record."""

from __future__ import annotations

import errno
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_skilleval.errors import ErrorClass, TrialFault, UserMistake
from pytest_skilleval.providers.base import Answer
from pytest_skilleval.providers.classes import TABLE, Policy, policy
from pytest_skilleval.records import (
    ArtifactRef,
    CheckResult,
    Component,
    Exposure,
    FileRef,
    Isolation,
    Outcome,
    Score,
    Tokens,
    Transcript,
    TrialError,
    TrialRecord,
    TrialTiming,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_skilleval.lanes import Marks
    from pytest_skilleval.model import Case, Condition, TrialId
    from pytest_skilleval.workbench import Workbench
    from pytest_skilleval.workspace.command import Ended

__all__ = ["Course", "settle"]

_ANSWER_CHARS = 20_000
_CLOCK_STEP = 2.0
"""Seconds; a clock that is merely corrected in the background drifts less."""
_ARTIFACT_KINDS = ("screenshot", "recording", "video")


@dataclass
class Course:
    """What a trial has gathered so far."""

    started: float = field(default_factory=time.time)
    """Seconds since the epoch: shown, never used to measure."""
    clock: float = field(default_factory=time.monotonic)
    attempt: int = 1
    answer: Answer = field(default_factory=lambda: Answer(Transcript()))
    ended: Ended | None = None
    marks: Marks | None = None
    exposure: Exposure = field(default_factory=Exposure)
    scores: dict[str, float] = field(default_factory=dict)
    agent_started: float = 0.0
    """Seconds since the epoch."""
    waited: float = 0.0
    """Seconds of waiting for a slot, and between tries."""
    rate_limited: int = 0
    attempts: list[str] = field(default_factory=list)
    """Earlier attempts of ours, one line each."""
    earlier: list[Transcript] = field(default_factory=list)
    """What these attempts said and did: their tokens and cost are the trial's, too."""
    notes: list[str] = field(default_factory=list)
    fault: TrialError | None = None
    rules: Mapping[ErrorClass, Policy] = field(default_factory=lambda: TABLE)
    """What each class of error does."""
    left_something: bool = False
    """Whether the agent changed its workspace."""
    files: Mapping[str, FileRef] = field(default_factory=dict)
    artifacts: tuple[ArtifactRef, ...] = ()


def settle(
    course: Course,
    bench: Workbench,
    case: Case,
    condition: Condition,
    trial: TrialId,
    *,
    exception: BaseException | None,
    clean: Callable[[str], str],
) -> TrialRecord:
    """Return the trial's record.

    Args:
        course: What it gathered.
        bench: What all trials of this process share.
        case: What was asked.
        condition: What the agent could know.
        trial: The work item.
        exception: What the test function raised, or None.
        clean: Takes secrets out of a text.
    """
    outcome, reason, error = _outcome(course, case, exception)
    score, checks = _score(course, case, outcome, exception)
    transcript, marks = course.answer.transcript, course.marks
    costs = [one.cost_usd for one in (*course.earlier, transcript) if one.cost_usd is not None]
    return TrialRecord(
        run=bench.run,
        lane=trial.lane,
        case=trial.case,
        condition=trial.condition,
        trial=trial.trial,
        outcome=outcome,
        reason=clean(reason),
        control=condition.control,
        category=case.spec.category,
        skill=case.skill,
        fingerprint=case.fingerprint,
        provider=bench.info,
        score=None if outcome is Outcome.ERROR else _clean_score(score, clean),
        checks=tuple(_clean_check(check, clean) for check in checks),
        selected_skill=marks.selected_skill if marks else None,
        skills_used=transcript.skills_used,
        exposure=course.exposure,
        isolation=_isolation(course, bench),
        error=error.model_copy(update={"message": clean(error.message)}) if error else None,
        tokens=Tokens.total(one.tokens for one in (*course.earlier, transcript)),
        cost_usd=sum(costs) if costs else None,
        attempts=tuple(clean(line) for line in (*course.attempts, *transcript.attempts)),
        transcript=course.files.get("transcript.jsonl"),
        stdout=course.files.get("stdout"),
        stderr=course.files.get("stderr"),
        artifacts=course.artifacts,
        final_text=clean(transcript.final_text[:_ANSWER_CHARS]),
        notes=tuple(clean(note) for note in (*course.notes, *_clock_step(course))),
        extra=case.extra,
        timing=TrialTiming(
            started=course.started,
            duration_s=time.monotonic() - course.clock,
            agent_s=course.ended.duration if course.ended else 0.0,
            agent_started=course.agent_started,
            waited_s=course.waited,
            rate_limited=course.rate_limited,
            worker=bench.worker,
            pid=os.getpid(),
            attempt=course.attempt,
            session_id=transcript.session_id,
        ),
    )


def _clean_score(score: Score | None, clean: Callable[[str], str]) -> Score | None:
    if score is None:
        return None
    parts = tuple(part.model_copy(update={"reason": clean(part.reason)}) for part in score.components)
    return score.model_copy(update={"components": parts})


def _clean_check(check: CheckResult, clean: Callable[[str], str]) -> CheckResult:
    judged = check.judged
    if judged is not None:
        judged = judged.model_copy(update={"evidence": clean(judged.evidence)})
    return check.model_copy(update={"reason": clean(check.reason), "judged": judged})


def _clock_step(course: Course) -> list[str]:
    """Say that the clock was set meanwhile: the times that are shown are off then, the durations are not."""
    step = time.time() - course.started - (time.monotonic() - course.clock)
    if abs(step) < _CLOCK_STEP:
        return []
    return [f"the clock stepped by {step:+.0f} s meanwhile (or the machine slept): durations are by a monotonic clock"]


def _outcome(course: Course, case: Case, exception: BaseException | None) -> tuple[Outcome, str, TrialError | None]:
    if exception is not None:
        return _from_exception(exception)
    if course.fault is not None:
        return Outcome.ERROR, course.fault.message, course.fault
    error, marks = course.answer.error, course.marks
    rule = None if error is None else policy(error.error_class, course.rules).outcome
    if marks is not None and marks.unjudged and rule != "error":
        # Not even a bad ending counts: a rate to which only failures are added would be none.
        return Outcome.UNJUDGED, marks.reason, error
    if error is not None and (ended := _ended_badly(course, case, error)) is not None:
        return ended
    if marks is None:
        return Outcome.PASSED, "", error
    if marks.faults:
        return Outcome.ERROR, marks.faults[0].message, marks.faults[0]
    return (Outcome.PASSED if marks.passed else Outcome.FAILED), marks.reason, error


def _ended_badly(course: Course, case: Case, error: TrialError) -> tuple[Outcome, str, TrialError] | None:
    """Return the outcome of an answer with an error, or None when its checks are to decide."""
    rule = policy(error.error_class, course.rules).outcome
    if error.error_class is ErrorClass.TIMEOUT:
        chosen = case.spec.budget.on_timeout
        left_nothing = not course.answer.transcript.tool_calls and not course.left_something
        rule = "error" if chosen == "error" or left_nothing else "grade" if chosen == "grade" else "failed"
    if rule == "error":
        return Outcome.ERROR, error.message, error
    if rule == "failed":
        return Outcome.FAILED, f"{error.error_class.value}: {error.message}", error
    return None


def _from_exception(exception: BaseException) -> tuple[Outcome, str, TrialError | None]:
    text = str(exception).strip().partition("\n")[0]
    if isinstance(exception, TrialFault):
        error = TrialError(error_class=exception.error_class, message=exception.message)
        return Outcome.ERROR, exception.message, error
    # pytest.fail and pytest.skip raise exceptions of pytest's own that are no Exception.
    kind = type(exception).__name__
    if kind == "Failed" and text.endswith("from pytest-timeout."):
        # Its clock counts setting up and scoring too: that says nothing about the agent.
        message = f"{text.removesuffix('.')}; to bound the agent alone, set the case's budget.timeout"
        return Outcome.ERROR, message, TrialError(error_class=ErrorClass.TIMEOUT, message=message)
    if isinstance(exception, AssertionError) or kind == "Failed":
        return Outcome.FAILED, text or "an assertion failed", None
    if kind == "Skipped":
        return Outcome.NOT_NEEDED, f"not needed: skipped: {text}", None
    message = f"{kind}: {text}" if text else kind
    where = ErrorClass.SETUP if isinstance(exception, OSError | UserMistake) else ErrorClass.INTERNAL
    if isinstance(exception, OSError) and exception.errno in (errno.ENOSPC, errno.EDQUOT):
        where = ErrorClass.DISK
    return Outcome.ERROR, message, TrialError(error_class=where, message=message)


def _score(
    course: Course, case: Case, outcome: Outcome, exception: BaseException | None
) -> tuple[Score | None, tuple[CheckResult, ...]]:
    """Return the lane's score, or that of a Python case: its asserts, and what it scored itself."""
    if course.marks is not None:
        return course.marks.score, course.marks.checks
    if not case.python or course.fault is not None or outcome is Outcome.NOT_NEEDED:
        return None, ()
    passed = outcome is Outcome.PASSED
    why = "no assertion failed" if passed else str(exception).strip().partition("\n")[0]
    check = CheckResult(id="asserts", kind="python", passed=passed, reason=why)
    parts = [Component(id="asserts", value=float(passed), weight=1.0, reason=why)]
    parts += [
        Component(id=name, value=value, weight=1.0, reason="set by the case") for name, value in course.scores.items()
    ]
    return Score.of(tuple(parts)), (check,)


def _isolation(course: Course, bench: Workbench) -> Isolation:
    ended = course.ended
    if ended is None:
        return Isolation(sandbox="none", sandbox_reason="no agent process was run")
    return Isolation(
        sandbox=ended.sandbox,
        sandbox_reason="" if ended.sandbox != "none" else bench.sandbox.reason,
        tree=ended.tree,
        killed=ended.killed,
    )
