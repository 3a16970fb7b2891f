"""Checks, each turned into a yes or a no with its reason; a check that breaks is an error, never a no."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, assert_never

from pytest_skilleval.casespec import (
    BundleCheck,
    Check,
    CommandCheck,
    EventLogCheck,
    FileCheck,
    JsonCheck,
    OutputCheck,
    PythonCheck,
    RecordingCheck,
    RubricCheck,
    ScreenshotCheck,
    SkillCheck,
    SnapshotCheck,
    TextCheck,
    ToolCallCheck,
)
from pytest_skilleval.errors import ErrorClass, TrialFault
from pytest_skilleval.records import CheckResult, TrialError

from .facts import Facts
from .files import check_file, check_snapshot
from .finding import Finding, undecided
from .functions import changed_files, check_python
from .media import check_recording, check_screenshot
from .output import check_output
from .patterns import one_line
from .proof import check_bundle
from .tools import check_command, check_skill, check_text, check_tool_call
from .values import check_event_log, check_json

__all__ = ["Verified", "verify", "verify_all"]


class Verified(NamedTuple):
    """The answers of a case's checks."""

    results: tuple[CheckResult, ...]
    faults: tuple[TrialError, ...]
    """Checks that broke: not empty = the trial is an error."""


def verify_all(checks: tuple[Check, ...], facts: Facts) -> Verified:
    """Run checks in order; those that run the case's own files are refused when any of these changed."""
    runs_files = any(isinstance(check, (CommandCheck, PythonCheck)) for check in checks)
    changed = changed_files(facts.case) if runs_files else []
    results, faults = [], []
    for check in checks:
        try:
            finding = verify(check, facts, changed)
        except TrialFault as fault:
            faults.append(TrialError(error_class=fault.error_class, message=f"check {check.id}: {fault.message}"))
            results.append(_result(check, undecided(one_line(fault.message)), error=True))
        except Exception as broke:  # noqa: BLE001 - a check that breaks in an unforeseen way must not be a no
            message = f"{type(broke).__name__}: {one_line(str(broke))}"
            faults.append(TrialError(error_class=ErrorClass.CHECK, message=f"check {check.id}: {message}"))
            results.append(_result(check, undecided(message), error=True))
        else:
            results.append(_result(check, finding))
    return Verified(tuple(results), tuple(faults))


def _result(check: Check, finding: Finding, *, error: bool = False) -> CheckResult:
    return CheckResult(
        id=check.id,
        kind=check.kind,
        passed=finding.passed,
        reason=finding.reason,
        required=check.required,
        weight=check.weight,
        error=error,
        statement=check.statement if isinstance(check, RubricCheck) else "",
        judged=finding.judged,
    )


def verify(check: Check, facts: Facts, changed: Sequence[str] = ()) -> Finding:  # noqa: C901, PLR0912 - one branch a kind
    """Answer one check.

    Args:
        check: What is asked.
        facts: What is known of the trial.
        changed: Files of the case that changed since it was collected; nothing of the case is then run.

    Raises:
        TrialFault: The check broke.
    """
    if changed and isinstance(check, (CommandCheck, PythonCheck)):
        raise TrialFault(ErrorClass.TAMPERED, f"{', '.join(changed)} changed since the case was collected")
    match check:
        case FileCheck():
            return check_file(check, facts)
        case JsonCheck():
            return check_json(check, facts)
        case CommandCheck():
            return check_command(check, facts)
        case TextCheck():
            return check_text(check, facts)
        case OutputCheck():
            return check_output(check, facts)
        case ToolCallCheck():
            return check_tool_call(check, facts)
        case SkillCheck():
            return check_skill(check, facts)
        case SnapshotCheck():
            return check_snapshot(check, facts)
        case EventLogCheck():
            return check_event_log(check, facts)
        case PythonCheck():
            return check_python(check, facts)
        case RubricCheck():
            return facts.judge(check, facts) if facts.judge else undecided("unjudged: no judge was asked")
        case ScreenshotCheck():
            return check_screenshot(check, facts)
        case RecordingCheck():
            return check_recording(check, facts)
        case BundleCheck():
            return check_bundle(check, facts)
        case _:
            assert_never(check)
