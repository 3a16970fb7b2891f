"""The execution lane: components, weights, the pass rule."""

from __future__ import annotations

import pytest
from scoring.trials import MakeFacts, ran

from pytest_skilleval import lanes
from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.records import TrialError

WORKFLOW = [
    {"id": "read-both", "must": [r"main/report\.json", r"change/report\.json"]},
    {"id": "verdict-last", "must": [r"verdict\.txt"], "after": ["read-both"], "weight": 2},
]


def value(marks: lanes.Marks, component: str) -> float | None:
    assert marks.score is not None
    return {part.id: part.value for part in marks.score.components}[component]


def test_a_trial_that_does_all_that_is_asked_passes_with_score_1(make_facts: MakeFacts) -> None:
    facts = make_facts(
        calls=[
            ran("skilleval compare runs/main/report.json runs/change/report.json"),
            ran("echo improved > verdict.txt"),
        ],
        files={"verdict.txt": "improved\n"},
        checks=[
            {"id": "wrote", "kind": "file", "path": "verdict.txt", "matches": "^(improved|regressed|inconclusive)$"},
            {"id": "compared", "kind": "tool-call", "command": "skilleval compare|--compare-baseline"},
        ],
        workflow=WORKFLOW,
        anti_patterns=["rerun-until-green"],
        artifacts=[{"kind": "text", "path": "verdict.txt"}],
    )
    marks = lanes.grade(facts)
    assert marks.passed is True
    assert marks.score is not None
    assert marks.score.total == 1.0
    assert [part.id for part in marks.score.components] == [
        "provider-finished",
        "checks",
        "workflow",
        "anti-patterns",
        "artifacts",
    ]


def test_the_score_is_the_equal_mean_of_the_components_that_are_asked_for(make_facts: MakeFacts) -> None:
    # By hand: finished 1; checks 1 of 2 by weight 1:3 = 0.25; workflow 1 of weight 1+2 = 1/3; no anti-pattern named and no
    # artifact asked for, so both are left out: (1 + 0.25 + 1/3) / 3.
    facts = make_facts(
        calls=[ran("cat runs/main/report.json runs/change/report.json")],
        files={"a.txt": "yes"},
        checks=[
            {"id": "a", "kind": "file", "path": "a.txt", "weight": 1},
            {"id": "b", "kind": "file", "path": "b.txt", "weight": 3},
        ],
        workflow=WORKFLOW,
    )
    marks = lanes.grade(facts)
    assert marks.passed is False
    assert marks.score is not None
    assert marks.score.total == pytest.approx((1 + 0.25 + 1 / 3) / 3)
    assert value(marks, "anti-patterns") is None
    assert value(marks, "artifacts") is None
    assert "b: b.txt is not there" in marks.reason
    assert "step verdict-last" in marks.reason


def test_an_optional_check_lowers_the_score_and_lets_the_trial_pass(make_facts: MakeFacts) -> None:
    facts = make_facts(
        files={"a.txt": "yes"},
        checks=[
            {"id": "a", "kind": "file", "path": "a.txt"},
            {"id": "b", "kind": "file", "path": "b.txt", "required": False},
        ],
    )
    marks = lanes.grade(facts)
    assert marks.passed is True
    assert marks.score is not None
    assert marks.score.total == pytest.approx((1 + 0.5) / 2)


def test_an_anti_pattern_of_severity_error_fails_the_trial_and_one_of_warning_only_costs(make_facts: MakeFacts) -> None:
    common = {"files": {"a.txt": "yes"}, "checks": [{"id": "a", "kind": "file", "path": "a.txt"}]}
    bad = lanes.grade(
        make_facts(calls=[ran("until pytest; do :; done")], anti_patterns=["rerun-until-green"], **common)
    )
    assert bad.passed is False
    assert "rerun-until-green" in bad.reason
    warned = lanes.grade(make_facts(calls=[ran("sleep 5")], anti_patterns=["sleep-instead-of-wait"], **common))
    assert warned.passed is True
    assert warned.score is not None
    assert warned.score.total == pytest.approx(2 / 3)


def test_an_agent_that_did_not_finish_earns_nothing_by_not_having_misbehaved(make_facts: MakeFacts) -> None:
    error = TrialError(error_class=ErrorClass.MAX_TURNS, message="30 of 30 turns are used up")
    facts = make_facts(
        finished=False,
        error=error,
        calls=[ran("ls")],
        checks=[{"id": "a", "kind": "file", "path": "a.txt"}],
        anti_patterns=["best-seed"],
    )
    marks = lanes.grade(facts)
    assert marks.passed is False
    assert marks.score is not None
    assert marks.score.total == 0.0
    assert "30 of 30 turns" in marks.reason


def test_an_agent_that_did_nothing_earns_nothing_by_not_having_misbehaved(make_facts: MakeFacts) -> None:
    facts = make_facts(checks=[{"id": "a", "kind": "file", "path": "a.txt"}], anti_patterns=["best-seed"])
    marks = lanes.grade(facts)
    assert value(marks, "anti-patterns") == 0.0
    assert marks.score is not None
    assert marks.score.total == pytest.approx(1 / 3)


def test_an_agent_at_its_time_limit_is_judged_by_its_checks_where_the_case_says_so(make_facts: MakeFacts) -> None:
    error = TrialError(error_class=ErrorClass.TIMEOUT, message="300 s are over")
    common = {
        "finished": False,
        "error": error,
        "files": {"a.txt": "yes"},
        "checks": [{"id": "a", "kind": "file", "path": "a.txt"}],
    }
    assert lanes.grade(make_facts(budget={"on_timeout": "grade"}, **common)).passed is True
    assert lanes.grade(make_facts(budget={"on_timeout": "fail"}, **common)).passed is False


def test_a_pattern_that_runs_out_of_time_makes_the_trial_an_error_and_not_a_failure(make_facts: MakeFacts) -> None:
    facts = make_facts(
        answer="a" * 40 + "b",
        files={"a.txt": "yes"},
        checks=[
            {"id": "slow", "kind": "text", "matches": "(a|aa)+$"},
            {"id": "a", "kind": "file", "path": "a.txt"},
        ],
    )
    marks = lanes.grade(facts)
    assert marks.passed is None
    assert marks.score is None
    assert [fault.error_class for fault in marks.faults] == [ErrorClass.CHECK]
    assert "check slow" in marks.reason
    assert "took longer than" in marks.reason
    slow, other = marks.checks
    assert (slow.passed, slow.error) == (None, True)
    assert (other.passed, other.error) == (True, False)


def test_a_case_may_weigh_its_components_and_set_a_least_score(make_facts: MakeFacts) -> None:
    # finished 1 x 1, checks 0.5 x 3: 2.5 / 4.
    facts = make_facts(
        files={"a.txt": "yes"},
        checks=[
            {"id": "a", "kind": "file", "path": "a.txt"},
            {"id": "b", "kind": "file", "path": "b.txt", "required": False},
        ],
        scoring={"weights": {"checks": 3}, "pass_at": 0.7},
    )
    marks = lanes.grade(facts)
    assert marks.score is not None
    assert marks.score.total == pytest.approx(2.5 / 4)
    assert marks.passed is False
    assert "below 0.7" in marks.reason


def test_components_that_a_condition_rules_out_are_known_beforehand(make_facts: MakeFacts) -> None:
    facts = make_facts(checks=[{"id": "s", "kind": "skill"}], anti_patterns=["best-seed"])
    none = make_facts(condition="none").condition
    assert lanes.applies_to("checks", facts.case, facts.condition)
    assert not lanes.applies_to("checks", facts.case, none)
    assert lanes.applies_to("anti-patterns", facts.case, none)
    assert not lanes.applies_to("artifacts", facts.case, none)
