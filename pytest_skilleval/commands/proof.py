"""What the oracle and the no-op prove about cases: that they can be passed, and that their checks can fail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from pytest_skilleval.casespec import Check, FileCheck, OutputCheck, SkillCheck, SnapshotCheck, TextCheck, ToolCallCheck
from pytest_skilleval.model import Case
from pytest_skilleval.records import Component, Outcome
from pytest_skilleval.results import Report, TrialLine

from .suite import Finding

__all__ = ["lines_by_case", "prove"]

CaseKey = tuple[str, str]
_EARNED = (
    "expected-patterns", "workflow", "artifacts", "bundle-completeness", "report-completeness", "evidence-quality",
    "taxonomy", "reproducibility",
)  # fmt: skip
"""Components that nobody earns who does nothing; the others speak elsewhere."""
_ROUNDING = 1e-9


def lines_by_case(report: Report) -> dict[CaseKey, list[TrialLine]]:
    """Gather a report's trials by lane and case."""
    found: dict[CaseKey, list[TrialLine]] = defaultdict(list)
    for line in report.trials:
        found[line.lane, line.case].append(line)
    return dict(found)


def prove(
    cases: Mapping[CaseKey, Case],
    oracle: Mapping[CaseKey, Sequence[TrialLine]],
    noop: Mapping[CaseKey, Sequence[TrialLine]],
) -> Iterator[Finding]:
    """Yield what the two runs found.

    Args:
        cases: Those that were read from files, by lane and id; Python cases are only in the runs.
        oracle: The trials of the oracle.
        noop: The trials of the no-op.
    """
    for key in sorted({*oracle, *noop}):
        case = cases.get(key)
        found = (*_of_oracle(case, oracle.get(key, ())), *_of_noop(case, noop.get(key, ())))
        yield from (finding._replace(case=":".join(key)) for finding in found)


def _of_oracle(case: Case | None, lines: Sequence[TrialLine]) -> Iterator[Finding]:
    """Yield why a case cannot be passed, or that nothing shows that it can."""
    errors = [line for line in lines if line.outcome in (Outcome.ERROR, Outcome.MISSING)]
    if errors:
        yield Finding("broken", "", f"could not be measured{_under(errors, lines)}: {errors[0].reason}")
    if case is None or not (case.spec.solution or case.spec.answer):
        word = "a Python case" if case is None or case.python else "no `solution` and no `answer`"
        yield Finding("unproven", "", f"{word}: nothing shows that it can be passed")
        return
    failed = [line for line in lines if line.outcome is Outcome.FAILED]
    named = False
    for check, found in _checks(lines, passed=False).items():
        named = True
        yield Finding(
            "impossible", "", f"fails for the oracle{_under(found, lines)}: {_reason(found[0], check)}", "", check
        )
    if failed and not named:
        yield Finding("broken", "", f"fails for the oracle{_under(failed, lines)}: {failed[0].reason}")


def _of_noop(case: Case | None, lines: Sequence[TrialLine]) -> Iterator[Finding]:
    """Yield what passes although nothing was done."""
    if case is None:
        return
    guards = {check.id for check in case.spec.checks if _is_guard(check)}
    for check, found in _checks(lines, passed=True).items():
        if check not in guards:
            message = f"passes when nothing is done{_under(found, lines)}: {_reason(found[0], check)}"
            yield Finding("cannot fail", "", message, "", check)
    for component in _EARNED:
        free = _free(case, component) + _ROUNDING
        parts = [(line, part) for line in lines if (part := _component(line, component)) and (part.value or 0.0) > free]
        if parts:
            under = _under([line for line, _ in parts], lines)
            message = f"counts for something when nothing is done{under}: {parts[0][1].reason}"
            yield Finding("cannot fail", "", message, "", component)
    passed = [line for line in lines if line.outcome is Outcome.PASSED]
    if passed and case.skill is not None:
        yield Finding("cannot fail", "", f"the case passes when nothing is done{_under(passed, lines)}")


def _checks(lines: Sequence[TrialLine], *, passed: bool) -> dict[str, list[TrialLine]]:
    """Return the checks that ended so in some trial, and these trials."""
    found: dict[str, list[TrialLine]] = defaultdict(list)
    for line in lines:
        for check in line.checks:
            if check.passed is passed and not check.error:
                found[check.id].append(line)
    return found


def _reason(line: TrialLine, check: str) -> str:
    return next(result.reason for result in line.checks if result.id == check)


def _component(line: TrialLine, name: str) -> Component | None:
    parts = line.score.components if line.score is not None else ()
    return next((part for part in parts if part.id == name), None)


def _under(found: Sequence[TrialLine], lines: Sequence[TrialLine]) -> str:
    """Name the conditions, when it is not all of them."""
    names = sorted({line.condition for line in found})
    return "" if len(names) == len({line.condition for line in lines}) else f" under {', '.join(names)}"


def _is_guard(check: Check) -> bool:
    """Whether a check only says what must not happen: nothing happens where nothing is done, which proves nothing."""
    match check:
        case FileCheck():
            return not check.exists or check.changed is False or _only_never(check)
        case TextCheck() | SnapshotCheck() | OutputCheck():
            return _only_never(check)
        case ToolCallCheck():
            return check.max is not None and check.min == 0
        case SkillCheck():
            return not check.used
        case _:
            return False


def _only_never(check: FileCheck | TextCheck | SnapshotCheck | OutputCheck) -> bool:
    wanted = [check.contains, check.matches, getattr(check, "equals", None), getattr(check, "changed", None)]
    return check.never is not None and all(value is None for value in wanted)


def _free(case: Case, component: str) -> float:
    """Return what of a component is earned by doing nothing: workflow steps that only say what must not happen."""
    if component != "workflow":
        return 0.0
    total = sum(step.weight for step in case.spec.workflow)
    return sum(step.weight for step in case.spec.workflow if not step.must) / total if total else 0.0
