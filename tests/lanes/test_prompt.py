"""The prompt lane: routing and planning, judged by the answer."""

from __future__ import annotations

from typing import Any

import pytest
from scoring.trials import MakeFacts, loaded, ran

from pytest_skilleval import lanes
from pytest_skilleval.errors import ErrorClass

CASE: dict[str, Any] = {
    "prompt": "I changed a skill. How do I find out whether it helped?",
    "expect": [r"(?i)--trials\s+\d+", "(?i)--compare-baseline"],
    "forbid": ["(?i)run it once"],
    "workflow": [
        {"id": "trials", "must": ["--trials"]},
        {"id": "compare", "must": ["--compare-baseline"], "after": ["trials"]},
    ],
    "anti_patterns": ["rerun-until-green", "mean-without-interval"],
}
GOOD = "Run pytest --trials 5 for both, then --compare-baseline main, and read the interval."


def graded(make_facts: MakeFacts, answer: str, condition: str = "self-load", **more: Any) -> lanes.Marks:
    return lanes.grade(make_facts("prompt", condition, answer=answer, **{**CASE, **more}))


def total(marks: lanes.Marks) -> float:
    assert marks.score is not None
    return marks.score.total


def values(marks: lanes.Marks) -> dict[str, float | None]:
    assert marks.score is not None
    return {part.id: part.value for part in marks.score.components}


def test_a_right_answer_with_the_right_skill_passes_with_score_1(make_facts: MakeFacts) -> None:
    marks = graded(make_facts, GOOD, used=[loaded("eval-guide")])
    assert (marks.passed, total(marks), marks.selected_skill) == (True, 1.0, "eval-guide")


def test_the_weights_are_0_4_0_4_and_0_2(make_facts: MakeFacts) -> None:
    # One of two patterns, no skill, one of two steps: 0.4 x 0.5 + 0.4 x 0 + 0.2 x 0.5.
    marks = graded(make_facts, "Run pytest --trials 5.")
    assert marks.passed is False
    assert total(marks) == pytest.approx(0.3)
    assert "chose no skill, wanted eval-guide" in marks.reason
    assert "does not match '(?i)--compare-baseline'" in marks.reason


@pytest.mark.parametrize("condition", ["none", "preloaded"])
def test_without_discovery_selection_is_left_out_and_the_rest_scaled_up(make_facts: MakeFacts, condition: str) -> None:
    assert graded(make_facts, GOOD, condition).passed is True
    marks = graded(make_facts, "Run pytest --trials 5.", condition)
    # (0.4 x 0.5 + 0.2 x 0.5) / 0.6
    assert total(marks) == pytest.approx(0.5)
    assert values(marks)["skill-selection"] is None


def test_each_forbidden_match_costs_0_1_and_each_anti_pattern_0_05(make_facts: MakeFacts) -> None:
    answer = f"{GOOD}\nOr run it once.\nSimply compare the means.\nElse rerun it until it passes."
    marks = graded(make_facts, answer, used=[loaded("eval-guide")], forbid=["(?i)run it once", "(?i)or run"])
    assert total(marks) == pytest.approx(1 - 2 * 0.1 - 2 * 0.05)
    assert marks.passed is False
    assert "must not match '(?i)run it once', and does: 'Or run it once.'" in marks.reason
    assert "anti-pattern rerun-until-green" in marks.reason
    assert "mean-without-interval" not in marks.reason.replace("anti-pattern rerun", "")


def test_an_anti_pattern_of_severity_warning_costs_and_does_not_fail(make_facts: MakeFacts) -> None:
    marks = graded(make_facts, f"{GOOD}\nSimply compare the means.", used=[loaded("eval-guide")])
    assert marks.passed is True
    assert total(marks) == pytest.approx(0.95)


def test_what_is_advised_against_is_neither_forbidden_nor_an_anti_pattern(make_facts: MakeFacts) -> None:
    marks = graded(make_facts, f"{GOOD}\nDo not run it once, and never rerun until green.", used=[loaded("eval-guide")])
    assert (marks.passed, total(marks)) == (True, 1.0)


def test_a_score_never_falls_below_0(make_facts: MakeFacts) -> None:
    forbidden = [f"word{number}" for number in range(15)]
    assert total(graded(make_facts, " ".join(forbidden), forbid=forbidden)) == 0.0


def test_the_wrong_skill_fails_an_otherwise_perfect_answer(make_facts: MakeFacts) -> None:
    marks = graded(make_facts, GOOD, used=[loaded("other")])
    assert marks.passed is False
    assert total(marks) == pytest.approx(0.6)
    assert marks.selected_skill == "other"


def test_where_no_skill_is_wanted_loading_one_is_a_false_trigger(make_facts: MakeFacts) -> None:
    case: dict[str, Any] = {"skill": "none", "expect": [], "forbid": [], "workflow": [], "anti_patterns": []}
    right = graded(make_facts, "By fair queueing.", **case)
    assert (right.passed, total(right)) == (True, 1.0)
    wrong = graded(make_facts, "By fair queueing.", used=[loaded("eval-guide")], **case)
    assert (wrong.passed, total(wrong)) == (False, 0.0)


def test_a_case_of_which_nothing_can_be_measured_under_a_condition_has_no_score(make_facts: MakeFacts) -> None:
    case: dict[str, Any] = {"skill": "none", "expect": [], "forbid": [], "workflow": [], "anti_patterns": []}
    marks = graded(make_facts, "By fair queueing.", "none", **case)
    assert marks.score is None
    assert marks.passed is True


def test_tool_calls_their_output_and_the_prompt_satisfy_nothing(make_facts: MakeFacts) -> None:
    call = ran("pytest --trials 5 --compare-baseline main", output=GOOD)
    marks = graded(make_facts, "Done.", calls=[call], prompt=GOOD)
    assert total(marks) == 0.0


def test_checks_of_a_prompt_case_decide_about_passing_and_enter_no_score(make_facts: MakeFacts) -> None:
    checks = [{"id": "short", "kind": "text", "never": "(?s).{200}"}]
    assert graded(make_facts, GOOD, used=[loaded("eval-guide")], checks=checks).passed is True
    long = graded(make_facts, GOOD + " x" * 200, used=[loaded("eval-guide")], checks=checks)
    assert (long.passed, total(long)) == (False, 1.0)
    assert "short: the answer must not match" in long.reason


def test_an_unfinished_answer_does_not_pass(make_facts: MakeFacts) -> None:
    marks = graded(make_facts, GOOD, used=[loaded("eval-guide")], finished=False)
    assert marks.passed is False
    assert marks.reason == "the agent did not finish"


def test_a_pattern_that_runs_out_of_time_makes_the_trial_an_error(make_facts: MakeFacts) -> None:
    marks = graded(make_facts, "a" * 40 + "b", expect=["(a|aa)+$"])
    assert (marks.passed, marks.score) == (None, None)
    assert [fault.error_class for fault in marks.faults] == [ErrorClass.CHECK]
    assert marks.reason.startswith("expected-patterns: pattern '(a|aa)+$' took longer than")


def test_the_prompt_is_the_cases_own_in_every_condition(make_facts: MakeFacts) -> None:
    for condition in ("none", "self-load", "preloaded", "stale"):
        facts = make_facts("prompt", condition, **CASE)
        assert lanes.ask_text(facts.case, facts.condition) == CASE["prompt"]
