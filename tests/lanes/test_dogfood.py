"""The dogfood lane: the bundle and its report are scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scoring.samples import cast_v2, picture
from scoring.trials import MakeFacts, ran

from pytest_skilleval import lanes
from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.records import TrialError

CASE: dict[str, Any] = {
    "bundle": {"path": "proof", "profile": "reporting"},
    "report": {"path": "proof/report.md", "taxonomy": ["flaky", "drift", "underpowered"]},
}
REPORT = """\
# Summary
The greeting case is flaky: 3 of 5 trials pass.
# Setup
```sh
pip install pytest-skilleval
```
# Steps
```sh
pytest cases --trials 5
```
# Results
0.6 [0.23, 0.88], n = 5
# Evidence
[The run](run.json)
# Issues
- flaky: greet
"""


@pytest.fixture
def graded(make_facts: MakeFacts, tmp_path: Path) -> Any:
    def grade(files: dict[str, str | bytes], **more: Any) -> lanes.Marks:
        facts = make_facts("dogfood", files={f"proof/{name}": content for name, content in files.items()}, **CASE)
        bundle = None
        if files:
            bundle = lanes.collect_bundle(facts.workspace / "proof", tmp_path / "bundles" / "t1")
        return lanes.grade(make_facts("dogfood", collected=bundle, **{**CASE, **more}))

    return grade


def values(marks: lanes.Marks) -> dict[str, float | None]:
    assert marks.score is not None
    return {part.id: part.value for part in marks.score.components}


def total(marks: lanes.Marks) -> float:
    assert marks.score is not None
    return marks.score.total


def test_a_whole_bundle_passes_with_score_1(graded: Any) -> None:
    marks = graded({"report.md": REPORT, "run.json": '{"rate": 0.6}'})
    assert marks.passed is True
    assert total(marks) == 1.0
    assert list(values(marks)) == [
        "bundle-completeness",
        "report-completeness",
        "evidence-quality",
        "taxonomy",
        "reproducibility",
    ]


def test_five_dimensions_weigh_0_2_each(graded: Any) -> None:
    # By hand. Bundle: report and run, 1. Report: 5 of 6 sections (no Issues). Evidence: all five shares full, 1.
    # Taxonomy: no findings section, but a word of it is used, 1. Commands only in Results: 0.5.
    report = (
        REPORT.replace("# Issues\n- flaky: greet\n", "").replace("```sh", "```text") + "# Log\n```sh\npytest\n```\n"
    )
    marks = graded({"report.md": report, "run.json": '{"rate": 0.6}'})
    assert values(marks) == {
        "bundle-completeness": 1.0,
        "report-completeness": pytest.approx(5 / 6),
        "evidence-quality": 1.0,
        "taxonomy": 1.0,
        "reproducibility": 0.5,
    }
    assert total(marks) == pytest.approx((1 + 5 / 6 + 1 + 1 + 0.5) / 5)
    assert marks.passed is False
    assert marks.reason == "the report lacks section Issues"


def test_a_reference_that_resolves_to_nothing_fails_the_trial(graded: Any) -> None:
    marks = graded({"report.md": REPORT.replace("run.json", "absent.json"), "run.json": '{"rate": 0.6}'})
    assert marks.passed is False
    assert marks.reason == "the report names 'absent.json', which is not in the bundle"


def test_without_a_bundle_nothing_is_earned(graded: Any) -> None:
    marks = graded({})
    assert marks.passed is False
    assert total(marks) == 0.0
    assert "proof/report.md is not there or empty" in marks.reason
    assert "score 0.00 is below 0.6" in marks.reason


def test_a_score_below_0_6_does_not_pass(graded: Any) -> None:
    # Bundle 1 of 4, report 6 of 6, evidence (0.25 + 0.25 + 1 + 1 + 1) / 5, taxonomy 0 of 1, commands nowhere.
    report = (
        REPORT.replace("```sh", "```text").replace("- flaky: greet", "- odd: greet").replace("run.json", "report.md")
    )
    marks = graded({"report.md": report}, bundle={"path": "proof", "profile": "interactive"}, finished=True)
    assert total(marks) == pytest.approx((0.25 + 1 + 0.7 + 0 + 0) / 5)
    assert marks.reason == "score 0.39 is below 0.6"
    assert marks.passed is False


def test_a_case_may_set_its_own_least_score(graded: Any) -> None:
    files = {"report.md": REPORT.replace("```sh", "```text"), "run.json": '{"rate": 0.6}'}
    assert graded(files).passed is True
    assert graded(files, scoring={"pass_at": 0.9}).reason == "score 0.80 is below 0.9"


def test_an_interactive_bundle_needs_a_screenshot_and_a_recording(graded: Any) -> None:
    files: dict[str, str | bytes] = {
        "report.md": REPORT,
        "run.json": '{"rate": 0.6}',
        "screen.png": picture(),
    }
    bundle = {"path": "proof", "profile": "interactive"}
    marks = graded(files, bundle=bundle)
    assert values(marks)["bundle-completeness"] == 0.75
    assert marks.passed is True
    files["run.cast"] = cast_v2((0.1, "o", "$ pytest cases --trials 5\r\n5 passed\r\n"))
    assert values(graded(files, bundle=bundle))["bundle-completeness"] == 1.0


def test_what_is_not_asked_for_is_left_out(graded: Any) -> None:
    files = {"report.md": REPORT.replace("```sh", "```text"), "run.json": '{"rate": 0.6}'}
    marks = graded(files, report={"path": "proof/report.md"})
    assert values(marks)["taxonomy"] is None
    assert total(marks) == pytest.approx(3 / 4)


def test_the_agents_end_its_workflow_checks_and_habits_decide_too(graded: Any) -> None:
    files = {"report.md": REPORT, "run.json": '{"rate": 0.6}'}
    error = TrialError(error_class=ErrorClass.REFUSAL, message="it declined")
    assert graded(files, finished=False, error=error).reason == "the agent did not finish: it declined"
    steps = [{"id": "ran", "must": ["pytest"]}]
    assert graded(files, workflow=steps).reason.startswith("step ran")
    assert graded(files, workflow=steps, calls=[ran("pytest cases")]).passed is True
    habits = {"anti_patterns": ["rerun-until-green"]}
    assert graded(files, calls=[ran("pytest --reruns 9")], **habits).passed is False
    checks = [{"id": "other", "kind": "file", "path": "other.txt"}]
    assert graded(files, checks=checks).reason == "other: other.txt is not there"


def test_components_that_decide_only_about_passing_enter_no_score(graded: Any) -> None:
    files = {"report.md": REPORT, "run.json": '{"rate": 0.6}'}
    marks = graded(files, checks=[{"id": "other", "kind": "file", "path": "other.txt", "required": False}])
    assert (marks.passed, total(marks)) == (True, 1.0)
    assert [check.id for check in marks.checks] == ["other"]


def test_the_prompt_says_where_the_proof_must_go_and_nothing_of_the_condition(make_facts: MakeFacts) -> None:
    texts = {
        lanes.ask_text(facts.case, facts.condition)
        for facts in (make_facts("dogfood", name, **CASE) for name in ("none", "self-load", "preloaded", "stale"))
    }
    (text,) = texts
    assert text.startswith("Do it.\n\n")
    assert "the folder `proof`. It must hold a report, a piece of evidence besides it." in text
    assert "to `proof/report.md`" in text
    assert "Summary, Setup, Steps, Results, Evidence, Issues" in text
    assert "flaky, drift, underpowered" in text
