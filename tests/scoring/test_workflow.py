"""Steps of a workflow, looked for in what the agent did."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_skilleval.casespec import Lane, WorkflowStep
from pytest_skilleval.records import ToolCall, Transcript
from pytest_skilleval.scoring.workflow import Deeds, WorkflowResult, follow

from .trials import ran


def result(
    steps: list[dict[str, Any]], *calls: ToolCall, answer: str = "", lane: Lane = Lane.EXECUTION
) -> WorkflowResult:
    deeds = Deeds.of(Transcript(final_text=answer, tool_calls=calls), lane)
    return follow(tuple(WorkflowStep.model_validate(step) for step in steps), deeds)


def done(outcome: WorkflowResult) -> list[bool]:
    return [step.done for step in outcome.steps]


READ_THEN_WRITE = [
    {"id": "read-both", "must": [r"main/report\.json", r"change/report\.json"]},
    {"id": "verdict-last", "must": [r"verdict\.txt"], "after": ["read-both"], "weight": 2},
]


def test_steps_hold_in_the_order_in_which_they_were_done() -> None:
    outcome = result(
        READ_THEN_WRITE,
        ran("cat runs/main/report.json"),
        ran("cat runs/change/report.json"),
        ran("echo improved > verdict.txt"),
    )
    assert done(outcome) == [True, True]
    assert outcome.share == 1.0
    assert outcome.holds


def test_a_step_done_too_early_does_not_hold() -> None:
    outcome = result(
        READ_THEN_WRITE,
        ran("cat runs/main/report.json"),
        ran("echo improved > verdict.txt"),
        ran("cat runs/change/report.json"),
    )
    assert done(outcome) == [True, False]
    assert outcome.steps[1].reason == "done before step read-both"
    assert outcome.share == pytest.approx(1 / 3)
    assert not outcome.holds


def test_a_step_whose_predecessor_was_never_done_does_not_hold() -> None:
    outcome = result(READ_THEN_WRITE, ran("echo improved > verdict.txt"))
    assert done(outcome) == [False, False]
    assert "read-both, which must come first, was not done" in outcome.steps[1].reason


def test_steps_within_one_command_are_ordered_by_their_place_in_it() -> None:
    command = "skilleval compare main/report.json change/report.json > verdict.txt"
    assert done(result(READ_THEN_WRITE, ran(command))) == [True, True]


def test_a_step_that_is_not_required_costs_its_weight_only() -> None:
    steps = [{"id": "a", "must": ["alpha"]}, {"id": "b", "must": ["beta"], "required": False, "weight": 3}]
    outcome = result(steps, ran("alpha"))
    assert outcome.share == pytest.approx(0.25)
    assert outcome.holds


def test_what_tools_printed_and_refused_calls_satisfy_nothing() -> None:
    steps = [{"id": "ran-it", "must": ["pytest --trials 5"]}]
    assert not result(steps, ran("cat SKILL.md", output="Run pytest --trials 5", reads_only=True)).holds
    assert not result(steps, ran("pytest --trials 5", status="denied")).holds
    assert result(steps, ran("pytest --trials 5", status="error", exit_status=1)).holds


def test_the_path_of_a_written_file_counts_and_that_of_a_file_only_read_does_not() -> None:
    steps = [{"id": "wrote", "must": [r"verdict\.txt"]}]
    assert result(steps, ToolCall(name="Write", command="", path="/trial/verdict.txt")).holds
    assert not result(steps, ToolCall(name="Read", command="{}", path="/trial/verdict.txt", reads_only=True)).holds


def test_never_looks_only_after_the_steps_it_names() -> None:
    steps = [{"id": "saved", "must": ["git commit"]}, {"id": "no-edit", "never": ["sed -i"], "after": ["saved"]}]
    assert done(result(steps, ran("sed -i s/a/b/ x"), ran("git commit -m x"))) == [True, True]
    late = result(steps, ran("git commit -m x"), ran("sed -i s/a/b/ x"))
    assert done(late) == [True, False]
    assert "sed -i s/a/b/ x" in late.steps[1].reason


def test_a_denial_in_the_answer_is_not_what_must_never_happen() -> None:
    steps = [{"id": "no-push", "never": ["(?i)push(?:ed)? to main"]}]
    assert result(steps, answer="I did not push to main.").holds
    assert not result(steps, answer="I pushed to main.").holds


def test_in_the_prompt_lane_only_the_answer_is_looked_at_by_position() -> None:
    steps = [{"id": "plan", "must": ["(?i)fix the number"]}, {"id": "run", "must": ["--trials"], "after": ["plan"]}]
    assert result(steps, answer="Fix the number of trials, then pytest --trials 5", lane=Lane.PROMPT).holds
    assert not result(steps, answer="pytest --trials 5, and fix the number", lane=Lane.PROMPT).holds
    assert not result(steps, ran("fix the number --trials"), lane=Lane.PROMPT).holds


def test_the_answer_is_kept_when_there_were_too_many_commands() -> None:
    calls = [ran("x" * 49_000) for _ in range(30)]
    deeds = Deeds.of(Transcript(final_text="the end", tool_calls=tuple(calls)), Lane.EXECUTION)
    assert deeds.cut
    assert deeds.text.endswith("the end")
    assert len(deeds.text) <= 1_000_001


def test_no_step_at_all_has_no_share() -> None:
    outcome = result([], ran("ls"))
    assert outcome.share is None
    assert outcome.holds
