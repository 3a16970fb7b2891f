"""Checks of what the agent ran and said: text, tool-call, skill, command, rubric."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_skilleval.errors import ErrorClass

from .test_files import answer, verified
from .trials import MakeFacts, loaded, ran


@pytest.mark.parametrize(
    ("check", "holds"),
    [
        ({"matches": r"^Verdict: \w+$"}, True),
        ({"equals": "Plan.\nVerdict: improved"}, True),
        ({"contains": "improved", "never": "regressed"}, True),
        ({"matches": "^improved$"}, False),
        ({"never": "(?i)VERDICT"}, False),
        ({}, True),
    ],
)
def test_the_answer_is_looked_at(make_facts: MakeFacts, check: dict[str, Any], holds: bool) -> None:
    result = answer(make_facts, {"kind": "text", **check}, answer="Plan.\nVerdict: improved\n")
    assert result.passed is holds
    assert result.reason.startswith("the answer ")


def test_an_answer_is_not_the_prompt_nor_what_tools_printed(make_facts: MakeFacts) -> None:
    call = ran("cat x", output="improved")
    result = answer(make_facts, {"kind": "text", "contains": "improved"}, prompt="Say improved", calls=[call])
    assert result.passed is False
    assert answer(make_facts, {"kind": "text"}, answer="  \n").reason == "the answer is empty"


CALLS = [
    ran("cat SKILL.md", name="Read", reads_only=True, output="skilleval compare a b"),
    ran("pytest --trials 5"),
    ran("skilleval compare a b", status="denied"),
    ran("rm -rf runs", status="error", exit_status=1),
    ran("pytest --trials 5"),
]


@pytest.mark.parametrize(
    ("check", "holds", "reason"),
    [
        ({"command": r"pytest --trials \d"}, True, "2 calls of command"),
        ({"command": "pytest", "min": 3}, False, "2 calls of command 'pytest'; wanted at least 3"),
        ({"command": "pytest", "max": 1}, False, "wanted at most 1"),
        ({"command": "skilleval compare"}, False, "0 calls"),
        ({"command": "skilleval compare", "max": 0}, True, "0 calls"),
        ({"command": "rm -rf", "max": 0}, False, "and found 'rm -rf runs'"),
        ({"command": "pytest", "after": "rm -rf"}, True, "1 calls of command 'pytest' after 'rm -rf'"),
        ({"command": "cat", "after": "pytest"}, False, "0 calls"),
        ({"command": "pytest", "after": "never run", "max": 0}, True, "0 calls"),
        ({"tool": "^Read$"}, True, "1 calls of tool '^Read$'"),
        ({"tool": "^Read$", "command": "pytest"}, False, "0 calls"),
    ],
)
def test_calls_that_really_ran_are_counted(
    make_facts: MakeFacts, check: dict[str, Any], holds: bool, reason: str
) -> None:
    result = answer(make_facts, {"kind": "tool-call", **check}, calls=CALLS, prompt="skilleval compare")
    assert result.passed is holds
    assert reason in result.reason


def test_a_skill_counts_as_used_by_its_load_and_not_by_its_name(make_facts: MakeFacts) -> None:
    used = {"kind": "skill"}
    assert answer(make_facts, used, used=[loaded("eval-guide")]).passed
    assert answer(make_facts, used, answer="I used eval-guide", calls=[ran("echo eval-guide")]).passed is False
    unused = {"kind": "skill", "used": False}
    assert answer(make_facts, unused).reason == "eval-guide was not loaded"
    assert answer(make_facts, unused, used=[loaded("eval-guide")]).passed is False
    assert answer(make_facts, {**unused, "name": "other"}, used=[loaded("eval-guide")]).passed
    assert answer(make_facts, unused, skill="none", used=[loaded("other")]).reason.startswith("other was loaded")


@pytest.mark.parametrize("condition", ["none", "preloaded"])
def test_a_skill_check_is_undecided_where_no_skill_can_be_discovered(make_facts: MakeFacts, condition: str) -> None:
    result = answer(make_facts, {"kind": "skill"}, condition=condition)
    assert (result.passed, result.error) == (None, False)
    assert "cannot apply" in result.reason


def test_a_skill_check_without_any_skill_is_an_error_of_the_check(make_facts: MakeFacts) -> None:
    outcome = verified(make_facts, {"kind": "skill"}, skill="none")
    assert outcome.faults[0].error_class is ErrorClass.CHECK


@pytest.mark.parametrize(
    ("check", "holds", "reason"),
    [
        ({"run": ["cat", "out.txt"], "stdout": "^improved$"}, True, "ended with 0"),
        ({"run": ["cat", "out.txt"], "stdout": "^worse$"}, False, "stdout does not match '^worse$'"),
        ({"run": ["cat", "none.txt"]}, False, "ended with 1, wanted 0"),
        ({"run": ["cat", "none.txt"], "exit_status": 1, "stderr": "No such file"}, True, "ended with 1"),
        ({"run": ["cat", "none.txt"], "exit_status": None}, True, "ended with 1"),
        ({"run": ["{python}", "-c", "print('{case}')"], "stdout": "/cases$"}, True, "ended with 0"),
        ({"run": ["sleep", "30"], "timeout": 0.1}, False, "did not end within 0.1 s"),
        ({"run": ["./made-by-agent"]}, False, "the workspace holds no ./made-by-agent"),
    ],
)
def test_a_command_is_run_in_the_workspace(
    make_facts: MakeFacts, check: dict[str, Any], holds: bool, reason: str
) -> None:
    result = answer(make_facts, {"kind": "command", **check}, files={"out.txt": "improved\n"})
    assert (result.passed, result.error) == (holds, False)
    assert reason in result.reason


def test_a_program_that_this_machine_lacks_is_an_error_of_the_check(make_facts: MakeFacts) -> None:
    outcome = verified(make_facts, {"kind": "command", "run": ["no-such-program-anywhere"]})
    assert outcome.results[0].error
    assert "there is no program no-such-program-anywhere" in outcome.faults[0].message


def test_a_rubric_is_unjudged_and_no_error(make_facts: MakeFacts) -> None:
    result = answer(make_facts, {"kind": "rubric", "statement": "The report is pleasant to read."})
    assert (result.passed, result.error) == (None, False)
    assert result.reason.startswith("unjudged")
