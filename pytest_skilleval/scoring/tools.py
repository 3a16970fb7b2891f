"""Checks of what the agent ran and said, and commands run over what it left: text, tool-call, skill, command."""

from __future__ import annotations

import shutil

from pytest_skilleval.casespec import CommandCheck, SkillCheck, TextCheck, ToolCallCheck
from pytest_skilleval.errors import ErrorClass, TrialFault
from pytest_skilleval.records import ToolCall

from .facts import CommandResult, Facts
from .files import text_problem
from .finding import Finding, no, undecided, yes
from .patterns import cut_note, one_line, search
from .selection import can_discover, was_used
from .workflow import deed

__all__ = ["check_command", "check_skill", "check_text", "check_tool_call"]


def check_text(check: TextCheck, facts: Facts) -> Finding:
    """Look at the final answer; without any condition there must be one."""
    answer = facts.transcript.final_text
    problem = text_problem(check, answer)
    if (
        problem is None
        and not check.model_fields_set & {"equals", "contains", "matches", "never"}
        and not answer.strip()
    ):
        problem = "is empty"
    return yes(f"the answer is as wanted{cut_note(answer)}") if problem is None else no(f"the answer {problem}")


def check_tool_call(check: ToolCallCheck, facts: Facts) -> Finding:
    """Count the calls that the agent really ran; refused ones did not run."""
    calls = [call for call in facts.transcript.tool_calls if call.status != "denied"]
    if check.after is not None:
        first = next((i for i, call in enumerate(calls) if search(check.after, deed(call))), None)
        calls = [] if first is None else calls[first + 1 :]
    found = [call for call in calls if _fits(check, call)]
    what = " ".join(f"{word} {value!r}" for word, value in (("tool", check.tool), ("command", check.command)) if value)
    later = f" after {check.after!r}" if check.after is not None else ""
    said = f"{len(found)} calls of {what or 'any tool'}{later}"
    least = check.min if check.max is None else min(check.min, check.max)
    if len(found) < least:
        return no(f"{said}; wanted at least {least}")
    if check.max is not None and len(found) > check.max:
        which = one_line(deed(found[check.max]), 80)
        return no(f"{said}; wanted at most {check.max}, and found {which!r}")
    return yes(said)


def _fits(check: ToolCallCheck, call: ToolCall) -> bool:
    return (check.tool is None or search(check.tool, call.name) is not None) and (
        check.command is None or search(check.command, deed(call)) is not None
    )


def check_skill(check: SkillCheck, facts: Facts) -> Finding:
    """Look for the agent's own evidence that it loaded a skill."""
    name = check.name or facts.case.skill
    if name is None and check.used:
        raise TrialFault(ErrorClass.CHECK, "the check names no skill, and the case wants none")
    if not can_discover(facts.condition):
        return undecided(f"cannot apply under {facts.condition.name}: no skill could be discovered")
    used = was_used(name, facts)
    if used:
        return Finding(passed=check.used, reason=f"{used.name} was loaded: {one_line(used.evidence, 100)}")
    return Finding(
        passed=not check.used, reason=f"{name or 'no skill'} was not loaded" if name else "no skill was loaded"
    )


def check_command(check: CommandCheck, facts: Facts) -> Finding:
    """Run a command in the finished workspace and look at its status and output."""
    argv = [word.replace("{case}", str(facts.case.folder)).replace("{python}", facts.python) for word in check.run]
    done = facts.run_command(argv, check.timeout)
    shown = one_line(" ".join(check.run), 80)
    if done.timed_out:
        return no(f"{shown} did not end within {check.timeout:g} s")
    if done.exit_status is None:
        return _no_status(argv[0], shown, facts)
    problem = _output_problem(check, done)
    return yes(f"{shown} ended with {done.exit_status}") if problem is None else no(f"{shown} {problem}")


def _no_status(program: str, shown: str, facts: Facts) -> Finding:
    if shutil.which(program) is not None or (facts.workspace / program).exists():
        return no(f"{shown} was ended by a signal or could not be started")
    if "/" in program and not program.startswith("/"):
        return no(f"{shown} could not be started: the workspace holds no {program}")
    raise TrialFault(ErrorClass.CHECK, f"{shown} could not be started: there is no program {program}")


def _output_problem(check: CommandCheck, done: CommandResult) -> str | None:
    if check.exit_status is not None and done.exit_status != check.exit_status:
        said = one_line(done.stderr.strip() or done.stdout.strip(), 100)
        return f"ended with {done.exit_status}, wanted {check.exit_status}" + (f": {said}" if said else "")
    for stream, pattern, text in (("stdout", check.stdout, done.stdout), ("stderr", check.stderr, done.stderr)):
        if pattern is not None and search(pattern, text) is None:
            return f"ended with {done.exit_status}, but its {stream} does not match {pattern!r}: {one_line(text, 80)!r}"
    return None
