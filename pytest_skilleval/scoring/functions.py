"""Checks that are functions beside the case file, run from the very bytes whose digest was taken at collection."""

from __future__ import annotations

import hashlib
import linecache
import os
import sys
import traceback
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pytest_skilleval.casespec import PythonCheck
from pytest_skilleval.errors import ErrorClass, TrialFault
from pytest_skilleval.model import Case, Condition
from pytest_skilleval.records import SkillUse, ToolCall, Transcript

from .facts import Facts
from .finding import Finding, no, yes
from .patterns import one_line
from .selection import skills_used

__all__ = ["RunView", "changed_files", "check_python"]


@dataclass(frozen=True)
class RunView:
    """What a check function sees of a finished trial."""

    case: Case
    condition: Condition
    transcript: Transcript
    workspace: Path
    """The finished workspace."""
    skills: tuple[SkillUse, ...]
    """The skills that the agent chose, with the evidence."""

    @property
    def final_text(self) -> str:
        """The final answer."""
        return self.transcript.final_text

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tools that the agent ran, in order."""
        return self.transcript.tool_calls

    def used_skill(self, name: str) -> bool:
        """Return whether the agent chose and loaded a skill."""
        return any(use.name == name for use in self.skills)


def changed_files(case: Case) -> list[str]:
    """Return the files of a case that are no longer what they were when it was collected."""
    changed = []
    for name, digest in case.digests.items():
        path = case.folder / name
        try:
            now = {hashlib.sha256(path.read_bytes()).hexdigest()}
            if path.is_symlink():
                # A link below a named folder has the digest of where it points, as text.
                now.add(hashlib.sha256(os.fsencode(path.readlink())).hexdigest())
        except OSError:
            now = set()
        if digest not in now:
            changed.append(name)
    return sorted(changed)


def check_python(check: PythonCheck, facts: Facts) -> Finding:
    """Call a check function: None or True is yes; False, a text or a failed assertion is no.

    Raises:
        TrialFault: It cannot be loaded or raises anything else (class `check`), or its file changed since the case was
            collected (class `checker_tampered`).
    """
    file_name, _, function_name = check.function.partition("::")
    function = _load(facts.case, file_name, function_name)
    skills = skills_used(facts.transcript, facts.case)
    view = RunView(facts.case, facts.condition, facts.transcript, facts.workspace, skills)
    try:
        answer = function(view)
    except AssertionError as failed:
        return no(_why(failed))
    except (Exception, SystemExit) as broke:  # whatever a case's own code raises is an error of the check
        raise TrialFault(ErrorClass.CHECK, f"{check.function} raised {_named(broke)}{_where(broke)}") from broke
    except BaseException as outcome:
        # pytest.fail() in a check function says no; an interrupt is nobody's answer.
        if type(outcome).__name__ != "Failed":
            raise
        return no(one_line(str(outcome)))
    if answer is None or answer is True:
        return yes(f"{function_name} holds")
    if answer is False:
        return no(f"{function_name} does not hold")
    if isinstance(answer, str):
        return no(one_line(answer))
    kind = type(answer).__name__
    raise TrialFault(ErrorClass.CHECK, f"{check.function} returned {kind}; a check returns None, True, False or a text")


def _load(case: Case, file_name: str, function_name: str) -> Callable[[RunView], object]:
    path = case.folder / file_name
    try:
        code = path.read_bytes()
    except OSError as problem:
        raise TrialFault(ErrorClass.CHECK, f"{file_name} cannot be read: {problem.strerror}") from None
    digest = hashlib.sha256(code).hexdigest()
    if case.digests.get(file_name, digest) != digest:
        raise TrialFault(ErrorClass.TAMPERED, f"{file_name} changed since the case was collected")
    # A name of its own: two cases may each have a `check.py`, and neither may shadow an installed module.
    module = types.ModuleType(f"_skilleval_check_{digest[:16]}")
    module.__file__ = str(path)
    # Dataclasses and pickles look their module up; it stays, since the function may be called after this.
    sys.modules[module.__name__] = module
    try:
        exec(compile(code, str(path), "exec"), module.__dict__)  # noqa: S102 - the case author's own code
    except (Exception, SystemExit) as broke:  # whatever a case's own code raises is an error of the check
        raise TrialFault(ErrorClass.CHECK, f"{file_name} cannot be imported: {_named(broke)}{_where(broke)}") from broke
    function = getattr(module, function_name, None)
    if not callable(function):
        raise TrialFault(ErrorClass.CHECK, f"{file_name} has no function {function_name}")
    return function  # type: ignore[no-any-return]


def _named(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {one_line(str(problem))}" if str(problem) else type(problem).__name__


def _last_line(problem: BaseException) -> traceback.FrameSummary | None:
    frames = traceback.extract_tb(problem.__traceback__)
    return frames[-1] if frames else None


def _where(problem: BaseException) -> str:
    frame = _last_line(problem)
    return f" ({Path(frame.filename).name}:{frame.lineno})" if frame else ""


def _why(failed: AssertionError) -> str:
    if str(failed):
        return one_line(str(failed))
    frame = _last_line(failed)
    if frame is None or frame.lineno is None:
        return "an assertion failed"
    linecache.checkcache(frame.filename)
    line = linecache.getline(frame.filename, frame.lineno).strip()
    return f"failed: {one_line(line)} ({Path(frame.filename).name}:{frame.lineno})"
